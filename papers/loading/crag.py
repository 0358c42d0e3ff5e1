"""The CRAG repository's folders: questions and knowledge, joined by line.

A folder such as ``data/arc_challenge`` holds `sources` (a question in each line) and
``ref/{correct,incorrect}``, a text for each question, after ``#``. Its answers, options and
passages are those of Self-RAG's evaluation file of the same task, which belongs next to `sources`.

The published files have faults (docs/method/paper-and-code.md lists them): lines of neighbouring
questions, lone carriage returns, missing marks and empty lines. What can be told from the files is
repaired and noted; anything else raises. ``ref/ambiguous``, which should join the other two and
often joins those of different questions, is not read: it is joined anew.
"""

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from crag.correction.strips import joint_text
from crag.errors import DataError
from crag.papers.bench.examples import Example, Loaded, TaskName
from crag.papers.loading.alignment import align
from crag.papers.loading.files import ReadLog, read_lines
from crag.papers.loading.rows import read_rows

SOURCES, _MARK = "sources", "#"
FILES = {"internal": "correct", "external": "incorrect"}
"""The names that `Example.knowledge` uses, and their files."""


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
    waiting, examples = _by_question(gold.examples), list[Example]()
    for place, question in enumerate(questions):
        rows = waiting.get(question)
        if not rows:
            log.refuse(place + 1, "the evaluation file has no such question")
            continue
        texts = {name: lines[place] for name, lines in knowledge.items() if lines and lines[place]}
        if texts.keys() == FILES.keys():
            texts["combined"] = joint_text(texts["internal"], texts["external"])
        examples.append(rows.popleft()._replace(question=question, knowledge=texts))
    loaded = log.finish(examples)
    return Loaded(loaded.examples, [*loaded.refused, *gold.refused], [*loaded.notes, *gold.notes])


def _gold(path: Path, task: TaskName) -> Loaded:
    """Read the one evaluation file of the folder."""
    files = sorted(file for file in path.iterdir() if file.suffix in {".jsonl", ".json"})
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        advice = "put Self-RAG's evaluation file of this task in the folder, and no other"
        raise DataError(path, f"it holds {names}; {advice}")
    return read_rows(files[0], task)


def _by_question(examples: Sequence[Example]) -> dict[str, deque[Example]]:
    """Group by the question as in `sources`: on one line, and as "who is" for biographies."""
    groups: dict[str, deque[Example]] = {}
    for example in examples:
        asked = f"Who is {example.topic}?" if example.topic else example.question
        groups.setdefault(" ".join(asked.split()), deque()).append(example)
    return groups


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
