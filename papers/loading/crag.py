"""The CRAG repository's folders: questions, options, passages and knowledge, joined by line.

A folder such as ``data/arc_challenge`` holds `sources` (a question in each line), `choices`,
`retrieved_psgs` and ``ref/{correct,incorrect}``, a text for each question, after ``#``. It has no
answers: put Self-RAG's evaluation file of the same task next to `sources` to join it by question.

The published files have faults (docs/method/paper-and-code.md lists them): lines of neighbouring
questions, lone carriage returns, missing marks and empty lines. What can be told from the files is
repaired and noted; anything else raises. ``ref/ambiguous``, which should join the other two and
often joins those of different questions, is not read: it is joined anew.
"""

import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from langchain_core.documents import Document

from crag.correction.strips import joint_text
from crag.errors import DataError
from crag.papers.bench.examples import Example, Loaded, TaskName
from crag.papers.loading.alignment import align
from crag.papers.loading.files import ReadLog, UnusableRowError, collect, json_rows, read_lines
from crag.papers.loading.rows import checked_choices, documents, example_of

SOURCES, CHOICES, PASSAGES = "sources", "choices", "retrieved_psgs"
FILES = {"internal": "correct", "external": "incorrect"}
"""The names that `Example.knowledge` uses, and their files."""
_TITLE_END, _MARK = " // ", "#"
_SELF_CRAG = re.compile(r"^(.*? // )?knowledge1:", re.IGNORECASE)
_LABELS = ("ABCDE", "12345")


def read(path: Path, task: TaskName) -> Loaded:
    """Read a folder of the repository; every file must align with the questions.

    Raises:
        DataError: a file is missing, unreadable, or belongs to other questions.
    """
    if not (path / SOURCES).is_file():
        raise DataError(path, f"it has no file {SOURCES!r}, with a question in each line")
    log = ReadLog(path)
    questions = [" ".join(line.split()) for line in read_lines(path / SOURCES)]
    knowledge = {name: _knowledge(path, file, questions, log) for name, file in FILES.items()}
    gold = _gold(path, task)
    if gold is None:
        log.repair("no answers; put Self-RAG's evaluation file of this task in the folder")
    waiting = _by_question(gold.examples) if gold else None
    passages = _beside(path / PASSAGES, questions, log)
    options = _beside(path / CHOICES, questions, log, overlapping=False)
    examples = []
    for place, question in enumerate(questions):
        try:
            example = _joined(question, place, task, waiting)
            if options and not example.choices:
                example = example._replace(choices=_choices(options[place], place + 1, log))
            if passages and not example.documents:
                found = _passages(passages[place], place + 1, task, log)
                example = example._replace(documents=found)
        except UnusableRowError as error:
            log.refuse(place + 1, str(error))
        else:
            texts = {name: lines[place] for name, lines in knowledge.items() if lines}
            texts = {name: text for name, text in texts.items() if text}
            if texts.keys() == FILES.keys():
                texts["combined"] = joint_text(texts["internal"], texts["external"])
            examples.append(example._replace(knowledge=texts))
    loaded = log.finish(examples)
    refused = [*loaded.refused, *(gold.refused if gold else [])]
    return Loaded(loaded.examples, refused, [*loaded.notes, *(gold.notes if gold else [])])


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
    rows = waiting.get(question)
    if not rows:
        raise UnusableRowError("the evaluation file has no such question")
    return rows.popleft()._replace(question=question)


def _knowledge(folder: Path, name: str, questions: Sequence[str], log: ReadLog) -> list[str]:
    """Return the text of each question without its mark, or none if there is no such file."""
    path = next((one for one in (folder / "ref" / name, folder / name) if one.is_file()), None)
    if path is None:
        return []
    lines = read_lines(path)
    if returns := sum(line.count("\r") for line in lines):
        log.repair(f"{name}: {returns} carriage returns within lines are read as spaces")
    fitting = _aligned(path, questions, [line.replace("\r", " ") for line in lines], log)
    for number, line in enumerate(fitting, start=1):
        if not line.removeprefix(_MARK).strip():
            log.repair(f"{name}: no knowledge for the question", number)
        elif not line.startswith(_MARK):
            log.repair(f"{name}: without the mark '#', so the text may begin in the middle", number)
    return [line.removeprefix(_MARK).strip() for line in fitting]


def _beside(
    path: Path, questions: Sequence[str], log: ReadLog, *, overlapping: bool = True
) -> list[str]:
    """Return the lines of a file aligned with the questions, or none if it is missing.

    Options share few words with their question, so they are not `overlapping` and only their number
    is checked.
    """
    if not path.is_file():
        return []
    lines = read_lines(path)
    if overlapping:
        return _aligned(path, questions, lines, log)
    if len(lines) != len(questions):
        raise DataError(path, f"its {len(lines)} lines are not of {len(questions)} questions")
    return lines


def _aligned(path: Path, questions: Sequence[str], lines: Sequence[str], log: ReadLog) -> list[str]:
    """Return the line of each question, and note what is moved; raise if none fits."""
    found = align(questions, lines)
    if found.shift is None:
        counts = f"its {len(lines)} lines do not belong to the {len(questions)} questions"
        raise DataError(path, f"{counts}. Take both from the same task and version")
    if found.shift:
        log.repair(f"{path.name}: moved by {found.shift:+d} line")
    for first, last, shift in found.moved:
        asked = f"{path.name}: questions {first + 1} to {last + 1}"
        log.repair(f"{asked} had lines of their neighbours: moved by {shift:+d} line")
    return ["" if place is None else lines[place] for place in found.places]


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
