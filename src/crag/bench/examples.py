"""The examples of a benchmark: one `Example` for each question, from any file format."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from langchain_core.documents import Document

from crag.errors import SettingsError

TaskName = Literal["popqa", "pubhealth", "arc", "biography", "triviaqa", "asqa", "qa"]
"""The tasks of both papers, and `qa`: any questions with answers and documents."""
TASKS: tuple[TaskName, ...] = get_args(TaskName)
FormatName = Literal["auto", "self-rag", "crag", "popqa", "alce", "ours"]
"""Who published the file: the Self-RAG authors, the CRAG repository, PopQA, ALCE, or us."""
FORMATS: tuple[FormatName, ...] = get_args(FormatName)

JSON = None | bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"]
"""Plain JSON."""
_NOTHING: Mapping[str, JSON] = {}
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
    file says so `url`, `relevant` (the right page) and `answer` (it contains an answer)."""
    choices: tuple[tuple[str, str], ...] = ()
    """ARC: label and text of each option, in the file's order and with its labels."""
    gold_titles: tuple[str, ...] = ()
    """Titles of relevant pages, where the file names them."""
    knowledge: Mapping[str, str] = _NO_TEXT
    """Published knowledge texts: `internal`, `external`, `combined`, each without its mark."""
    extra: Mapping[str, JSON] = _NOTHING
    """What only some files have, by the names that `crag.bench.loading` documents."""


class Refused(NamedTuple):
    """A row that was skipped, and why."""

    place: str
    """File and line, or file and position in its list."""
    reason: str
    id: str = ""


class Loaded(NamedTuple):
    """The content of a file: every row is either an example or refused."""

    examples: list[Example]
    refused: list[Refused]
    notes: list[str]
    """Repairs and oddities, each with its count; every repair is listed."""


def load_examples(
    path: Path,
    task: TaskName,
    *,
    format: FormatName = "auto",  # noqa: A002 - the name users know
    limit: int | None = None,
    seed: int = 0,
) -> Loaded:
    """Read the examples of `task` from a file, or from a folder of the CRAG repository.

    `limit` draws that many at random by `seed`, the same ones each time, and keeps the file's
    order. Rows that cannot be used are refused one by one. An invalid file, or one whose questions
    and knowledge do not belong together, raises.

    Raises:
        DataError: the file cannot be read, is of another task or format, or is misaligned.
        SettingsError: there is no such task or format, or the limit is below 1.
    """
    from crag.bench.loading.detect import load

    if task not in TASKS:
        raise SettingsError("task", task, f"choose one of {', '.join(TASKS)}")
    if format not in FORMATS:
        raise SettingsError("format", format, f"choose one of {', '.join(FORMATS)}")
    if limit is not None and limit < 1:
        raise SettingsError("limit", limit, "it must be at least 1, or left out")
    loaded = load(Path(path), task, format)
    return loaded if limit is None else sample(loaded, limit, seed)


def sample(loaded: Loaded, limit: int, seed: int) -> Loaded:
    """Keep `limit` examples drawn at random by `seed`, in the file's order, and note it."""
    import random

    total = len(loaded.examples)
    if limit >= total:
        return loaded
    chosen = sorted(random.Random(seed).sample(range(total), limit))  # noqa: S311 - no secret
    note = f"{limit} of {total} examples drawn with seed {seed}"
    return loaded._replace(
        examples=[loaded.examples[place] for place in chosen], notes=[*loaded.notes, note]
    )
