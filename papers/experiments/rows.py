"""The result of one question: a row of plain JSON, and the file of rows."""

from pathlib import Path
from typing import Any, NotRequired, TypedDict

from crag.asking.lines import Lines, Status


class CitedText(TypedDict):
    """The text that a number in an answer refers to."""

    number: int
    title: str
    text: str


class Row(TypedDict):
    """One question under one variant of a method."""

    key: str
    """Names question, documents, variant, parts, program and seed: a finished key is not run again,
    and a row of another program is not mixed with those of this one."""
    variant: str
    """Its name in the experiment; several variants share one method."""
    condition: dict[str, Any]
    """The change to the documents, such as ``{"retrieval_accuracy": 0.3}``; empty if none."""
    id: str
    task: str
    method: str
    settings: dict[str, Any]
    """The settings that differ from the defaults, as given."""
    seed: int
    model: str
    evaluator: str
    status: Status
    error: str
    """Why it failed; empty otherwise."""
    answer: str
    action: str
    """Empty if the method takes no action."""
    scores: list[float]
    """Scores of the documents, in their order."""
    knowledge: str
    """The text for the generator."""
    citations: list[CitedText]
    """The texts that the numbers in the answer refer to."""
    knowledge_words: int
    documents_words: int
    """Number of documents that the method retrieved."""
    retrieved_holds_answer: bool | None
    """A gold answer is a substring of a document; None without gold answers or documents."""
    knowledge_holds_answer: bool | None
    events: list[str]
    """Their kinds."""
    usage: dict[str, int]
    cached: dict[str, int]
    """The part of `usage` that came from the cache and was not spent again."""
    seconds: float
    cost: float | None
    """In the currency of the prices given; None without prices."""
    reflection: dict[str, Any] | None
    unsupported: NotRequired[float | None]
    """Share of the answer's sentences that no strip supports; None without an answer that cites."""


class RowFile(Lines[Row]):
    """The rows of one run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Row.__required_keys__, "a row of a benchmark")
