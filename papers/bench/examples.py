"""The examples of a benchmark: one `Example` for each question, from any file format."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from langchain_core.documents import Document

from crag.papers.tasks import PaperTask

TaskName = Literal[PaperTask, "triviaqa", "qa"]
"""The tasks of both papers, and `qa`: any questions with answers and documents."""
TASKS: tuple[TaskName, ...] = get_args(TaskName)

_NO_TEXT: Mapping[str, str] = {}


class Example(NamedTuple):
    """One question of a task."""

    id: str
    """Unique in its file."""
    task: TaskName
    question: str
    """The question, claim or request alone, without the task's instructions."""
    answers: tuple[tuple[str, ...], ...]
    """Accepted answers, one tuple for each thing asked: many for ASQA, else one. PubHealth: `true`
    or `false`. ARC: the answer key as published, not mapped. Empty where the file has none."""
    documents: tuple[Document, ...] = ()
    """Retrieved passages, best first. Metadata: `title`, `id`, `position` (from 0), and where the
    file says so `url` and `relevant` (the right page)."""
    choices: tuple[tuple[str, str], ...] = ()
    """ARC: label and text of each option, in the file's order and with its labels."""
    gold_titles: tuple[str, ...] = ()
    """Titles of relevant pages, where the file names them."""
    knowledge: Mapping[str, str] = _NO_TEXT
    """Published knowledge texts: `internal`, `external`, `combined`, each without its mark."""
    topic: str = ""
    """Biography: the person."""
    references: tuple[str, ...] = ()
    """ASQA: long answers of people."""
    reference: str = ""
    """ASQA: the one that MAUVE compares with."""


class Refused(NamedTuple):
    """A row that was skipped, and why."""

    place: str
    """File and line, or file and position in its list."""
    reason: str


class Loaded(NamedTuple):
    """The content of a file: every row is either an example or refused."""

    examples: list[Example]
    refused: list[Refused]
    notes: list[str]
    """Repairs and oddities, each with its count; every repair is listed."""
