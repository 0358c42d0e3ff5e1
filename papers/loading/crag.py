"""The CRAG repository's folders: questions, options, passages and knowledge, joined by line.

A folder such as ``data/arc_challenge`` holds `sources` (a question in each line), `choices`,
`retrieved_psgs` and ``ref/{correct,incorrect,ambiguous}``, a text for each question and action:
the first two begin each line with ``#``, the third joins both as ``Knowledge1: … [sep] Knowledge2:
…``. It has no answers: put Self-RAG's evaluation file of the same task next to `sources` to join it
by question.

The published files have faults (docs/method/paper-and-code.md lists them): lines of neighbouring
questions, halves of two questions, lone carriage returns, missing marks and empty lines. What can
be told from the files is repaired and noted; anything else raises.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from langchain_core.documents import Document

from crag.correction.strips import joint_text
from crag.errors import DataError
from crag.papers.bench.examples import Example, Loaded, TaskName
from crag.papers.loading.alignment import Alignment, align
from crag.papers.loading.files import ReadLog, UnusableRowError, collect, json_rows, read_lines
from crag.papers.loading.rows import checked_choices, documents, example_of

SOURCES, CHOICES, PASSAGES = "sources", "choices", "retrieved_psgs"
FILES = {"internal": "correct", "external": "incorrect", "combined": "ambiguous"}
"""The names that `Example.knowledge` uses, and their files."""
_TITLE_END, _MARK = " // ", "#"
_FIRST_HALF = re.compile(r"\s*knowledge1:\s*", re.IGNORECASE)
_SECOND_HALF = re.compile(r"\s*\[sep\]\s*knowledge2:\s*", re.IGNORECASE)
_SELF_CRAG = re.compile(r"^(.*? // )?knowledge1:", re.IGNORECASE)
_LABELS = ("ABCDE", "12345")


def read(path: Path, task: TaskName, *, as_published: bool = False) -> Loaded:
    """Read a folder of the repository; every file must align with the questions.

    With `as_published` questions and knowledge are what the official program reads, to the letter,
    line by line and with all faults.

    Raises:
        DataError: a file is missing, unreadable, or belongs to other questions.
    """
    if not (path / SOURCES).is_file():
        raise DataError(path, f"it has no file {SOURCES!r}, with a question in each line")
    log = ReadLog(path)
    lines = read_lines(path / SOURCES, log)
    questions = [line.strip() if as_published else " ".join(line.split()) for line in lines]
    knowledge = _knowledge(path, questions, as_published=as_published)
    gold = _gold(path, task)
    if gold is None:
        log.repair("no answers; put Self-RAG's evaluation file of this task in the folder")
    waiting = _by_question(gold.examples) if gold else None
    passages = _beside(path / PASSAGES, questions, log)
    options = _beside(path / CHOICES, questions, log, overlapping=False)
    examples = []
    for place, question in enumerate(questions):
        try:
            if any(place >= len(one.texts) for one in knowledge):
                # The official program leaves out a question after the last line, too.
                raise UnusableRowError("a knowledge file ends before it")  # noqa: TRY301
            example = _joined(question, place, task, waiting)
            if options and not example.choices:
                example = example._replace(choices=_choices(options[place], place + 1, log))
            if passages and not example.documents:
                found = _passages(passages[place], place + 1, task, log)
                example = example._replace(documents=found)
        except UnusableRowError as error:
            log.refuse(place + 1, str(error))
        else:
            texts = {one.name: one.texts[place] for one in knowledge if one.has(place)}
            unmarked: list[str] = [one.name for one in knowledge if place in one.unmarked]
            extra = {**example.extra, "unmarked": unmarked} if unmarked else example.extra
            examples.append(example._replace(knowledge=texts, extra=extra))
    loaded = log.finish(examples)
    notes = [*loaded.notes, *(note for one in knowledge for note in one.notes)]
    refused = [*loaded.refused, *(gold.refused if gold else [])]
    return Loaded(loaded.examples, refused, [*notes, *(gold.notes if gold else [])])


def _gold(path: Path, task: TaskName) -> Loaded | None:
    """Read the one evaluation file of the folder, if there is one."""
    files = sorted(file for file in path.iterdir() if file.suffix in {".jsonl", ".json"})
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise DataError(path, f"which file has the answers? It holds {names}; leave one")
    if not files:
        return None
    log = ReadLog(files[0])
    rows = json_rows(files[0], log)
    return collect(log, rows, lambda row, number, log: example_of(row, task, number, log))


def _by_question(examples: Sequence[Example]) -> dict[str, deque[Example]]:
    """Group by the question as in `sources`: on one line, and as "who is" for biographies."""
    groups: dict[str, deque[Example]] = {}
    for example in examples:
        topic = example.extra.get("topic")
        asked = f"Who is {topic}?" if example.task == "biography" else example.question
        groups.setdefault(" ".join(asked.split()), deque()).append(example)
    return groups


def _joined(
    question: str, place: int, task: TaskName, waiting: dict[str, deque[Example]] | None
) -> Example:
    """Return the example of the evaluation file, or a plain one without such a file."""
    if not question:
        raise UnusableRowError("the question is empty")
    if waiting is None:
        titles = (question[7:-1],) if task == "biography" else ()
        extra = {"topic": titles[0]} if titles else {}
        return Example(f"line-{place + 1}", task, question, (), gold_titles=titles, extra=extra)
    rows = waiting.get(" ".join(question.split()))
    if not rows:
        raise UnusableRowError("the evaluation file has no such question")
    return rows.popleft()._replace(question=question)


class _Knowledge(NamedTuple):
    """One knowledge file, a text for each question."""

    name: str
    """internal, external or combined."""
    texts: list[str]
    """Without the mark; empty if the file has no text."""
    unmarked: set[int]
    """Questions, from 0, whose line lacks the mark and may begin in mid-text."""
    notes: list[str]
    as_published: bool = False
    """The lines to the letter, empty ones too; after the last one, questions have none."""

    def has(self, place: int) -> bool:
        """Return whether a question, from 0, has a text."""
        return self.as_published or bool(self.texts[place])


def _knowledge(
    folder: Path, questions: Sequence[str], *, as_published: bool = False
) -> list[_Knowledge]:
    """Read the knowledge files in ``ref`` or in the folder itself."""
    found: dict[str, _Knowledge] = {}
    for name, file in FILES.items():
        for path in (folder / "ref" / file, folder / file):
            if path.is_file() and name not in found:
                log = ReadLog(path)
                if as_published:
                    found[name] = _released(name, path, len(questions), log)
                else:
                    found[name] = _repaired(name, path, questions, found, log)
    return list(found.values())


def _released(name: str, path: Path, questions: int, log: ReadLog) -> _Knowledge:
    """Return the lines as the official program reads them (official code, inference).

    A lone carriage return ends a line too, the mark stays, and white space around a line goes.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    texts = [line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)]
    counts = f"{len(texts)} lines for {questions} questions"
    log.repair(f"as the official program reads it, nothing repaired: {counts}")
    return _Knowledge(name, texts, set(), log.notes, as_published=True)


def _repaired(
    name: str,
    path: Path,
    questions: Sequence[str],
    others: Mapping[str, _Knowledge],
    log: ReadLog,
) -> _Knowledge:
    lines = read_lines(path, log)
    if returns := sum(line.count("\r") for line in lines):
        log.repair(f"{returns} carriage returns within lines are read as spaces")
    lines = [line.replace("\r", " ") for line in lines]
    halves = [_SECOND_HALF.split(line, maxsplit=1) for line in lines]
    found = _aligned(path, questions, [half[0] for half in halves], log)
    fitting, unmarked = found.fitted(lines), set[int]()
    if name == "combined":
        second = align(questions, [half[-1] if len(half) > 1 else "" for half in halves])
        same = not second.places or found.places == second.places
        fitting = _joined_anew(path, fitting, others, log, same=same)
    else:
        unmarked = _unmarked(fitting, log)
    texts = [line.removeprefix(_MARK).strip() for line in fitting]
    for place, text in enumerate(texts, start=1):
        if not text:
            log.repair("no knowledge for the question", place)
    return _Knowledge(name, texts, unmarked, log.notes)


def _aligned(path: Path, questions: Sequence[str], lines: Sequence[str], log: ReadLog) -> Alignment:
    """Return which line belongs to each question, and note what is moved; raise if none fits."""
    found = align(questions, lines)
    if found.shift is None:
        counts = f"its {len(lines)} lines do not belong to the {len(questions)} questions"
        if not found.checked:
            raise DataError(path, f"{counts}: they are too few to align")
        shifts = found.overlaps.items()
        overlaps = ", ".join(f"{value:.2f} by {shift:+d}" for shift, value in shifts)
        problem = f"{counts}: word overlap {overlaps}, {found.unrelated:.2f} with unrelated lines"
        raise DataError(path, f"{problem}. Take both from the same task and version")
    if not found.checked:
        log.repair("too few lines to check that they belong to the questions")
    if found.shift:
        log.repair(
            f"moved by {found.shift:+d} line: overlap with the questions "
            f"{found.overlaps[found.shift]:.2f} instead of {found.overlaps[0]:.2f}"
        )
    for first, last, shift in found.moved:
        asked = f"questions {first + 1} to {last + 1}"
        log.repair(f"{asked} had lines of their neighbours: moved by {shift:+d} line")
    if (extra := len(lines) - found.shift - len(questions)) > 0:
        log.repair(f"dropped {extra} lines after the last question")
    return found


def _joined_anew(
    path: Path,
    lines: Sequence[str],
    others: Mapping[str, _Knowledge],
    log: ReadLog,
    *,
    same: bool,
) -> list[str]:
    """Join from the other files what combined knowledge joins from two different questions.

    `same` says whether both halves seem to belong to the same questions. Where a file has carriage
    returns within lines, its texts drift away from their questions ever further.
    """
    if not {"internal", "external"} <= others.keys():
        if same:
            return list(lines)
        problem = "its internal and external halves belong to different questions"
        raise DataError(path, f"{problem}; put 'correct' and 'incorrect' beside it")
    joined = list(lines)
    texts = zip(others["internal"].texts, others["external"].texts, strict=True)
    for place, both in enumerate(texts):
        first, *second = _SECOND_HALF.split(lines[place], maxsplit=1)
        halves = [_FIRST_HALF.sub("", first, count=1), *second, ""][:2]
        if [half.split() for half in halves] != [text.split() for text in both]:
            log.repair("not the two texts of the question, joined anew", place + 1)
            joined[place] = joint_text(*both)
    return joined


def _unmarked(lines: Sequence[str], log: ReadLog) -> set[int]:
    """Return the indices, from 0, of lines with text and no mark; none if no line has a mark."""
    if not any(line.startswith(_MARK) for line in lines):
        log.repair("no line has the mark '#'")
        return set()
    found = [n for n, line in enumerate(lines) if line.strip() and not line.startswith(_MARK)]
    for place in found:
        log.repair("without the mark '#', so the text may begin in the middle", place + 1)
    return set(found)


def _beside(
    path: Path, questions: Sequence[str], log: ReadLog, *, overlapping: bool = True
) -> list[str]:
    """Return the lines of a file aligned with the questions, or none if it is missing.

    Lines that are off by one are shifted. Options share few words with their question, so they are
    not `overlapping` and only their number is checked.
    """
    if not path.is_file():
        return []
    lines = read_lines(path, ReadLog(path))
    if not overlapping and len(lines) == len(questions):
        return lines
    found = align(questions, lines) if overlapping else None
    if found is None or found.shift is None:
        problem = f"its {len(lines)} lines do not belong to the {len(questions)} questions"
        raise DataError(path, f"{problem} of 'sources'; take both from the same version")
    for shift in dict.fromkeys(filter(None, (found.shift, *(one.shift for one in found.moved)))):
        log.repair(f"moved lines of {path.name} by {shift:+d} to align them with the questions")
    return found.fitted(lines)


def _choices(line: str, number: int, log: ReadLog) -> tuple[tuple[str, str], ...]:
    """Read ``A: text; B: text; …`` or ``1: text; 2: text; …``."""
    labels = next((some for some in _LABELS if line.startswith(f"{some[0]}: ")), None)
    if labels is None:
        raise UnusableRowError(f"its options do not begin with a label: {line[:40]!r}")
    found, rest = [], f"; {line}"
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        rest = rest.removeprefix(f"; {label}: ")
        end = rest.find(f"; {following}: ") if following else -1
        found.append((label, (rest if end < 0 else rest[:end]).strip()))
        if end < 0:
            break
        rest = rest[end:]
    return checked_choices(found, number, log)


def _passages(line: str, number: int, task: TaskName, log: ReadLog) -> tuple[Document, ...]:
    """Read passages joined by ``[sep]``.

    The published file of the biographies holds the three texts of Self-CRAG instead of passages;
    such a line has none.
    """
    pieces = [piece for piece in line.split(" [sep] ") if piece.strip()]
    if any(_SELF_CRAG.match(piece) for piece in pieces):
        log.repair("retrieved_psgs holds Self-CRAG's three texts, not passages", number)
        return ()
    return documents([_titled(piece, task) for piece in pieces], number, log)


def _titled(passage: str, task: TaskName) -> dict[str, object]:
    """Split a passage ``title // text``; PopQA's are text only."""
    title, found, text = passage.partition(_TITLE_END)
    whole = task == "popqa" or not found
    return {"title": "" if whole else title, "text": passage if whole else text}
