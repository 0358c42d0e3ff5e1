"""The result of one question in an experiment: a row of plain JSON, and the file of rows."""

from pathlib import Path
from typing import Any

from crag.asking.json_lines import JsonLines
from crag.papers.bench.running import AnswerRow


class Row(AnswerRow):
    """One question under one variant of a method."""

    key: str
    """Names question, documents, variant, parts, program and seed: a finished key is not run again,
    and a row of another program is not mixed with those of this one."""
    variant: str
    """Its name in the experiment; several variants share one method."""
    condition: dict[str, Any]
    """The change to the documents, such as ``{"retrieval_accuracy": 0.3}``; empty if none."""
    task: str
    method: str
    settings: dict[str, Any]
    """The settings that differ from the defaults, as given."""
    seed: int
    model: str
    evaluator: str
    scores: list[float]
    """Scores of the documents, in their order."""
    knowledge: str
    """The text for the generator."""
    knowledge_words: int
    documents_words: int
    """Number of words of the documents that the method retrieved."""
    retrieved_holds_answer: bool | None
    """A gold answer is a substring of a document; None without gold answers or documents."""
    knowledge_holds_answer: bool | None
    cached: dict[str, int]
    """The part of `usage` that came from the cache and was not spent again."""
    cost: float | None
    """In the currency of the prices given; None without prices."""
    reflection: dict[str, Any] | None


class RowFile(JsonLines[Row]):
    """The rows of one run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Row.__required_keys__, "a row of a benchmark")
