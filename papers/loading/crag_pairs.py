"""The CRAG repository's evaluator files: ``question [SEP] passage``, PopQA with a tab and a label.

Lines of one question follow each other; the released reader expects exactly ten. There are no
answers, only whether each passage is from the right page.
"""

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from crag.papers.bench.examples import Example, Loaded, TaskName
from crag.papers.loading.fields import documents
from crag.papers.loading.files import read_lines
from crag.papers.loading.read_log import ReadLog, finish

SEPARATOR = " [SEP] "


class _PassageLine(NamedTuple):
    number: int
    question: str
    passage: str
    label: int | None


def read(path: Path, task: TaskName) -> Loaded:
    """Read an evaluator file; each run of lines with the same question is one example.

    Raises:
        DataError: the file cannot be read, or no line of it can be used.
    """
    reading = ReadLog(path)
    lines = list(enumerate(read_lines(path, reading), start=1))
    labelled = any("\t" in line for _, line in lines)
    usable = [
        parsed for number, line in lines if (parsed := _parse(line, number, labelled, reading))
    ]
    groups = [list(group) for _, group in groupby(usable, key=lambda line: line.question)]
    _note_sizes(groups, reading)
    reading.repair("no answers in this file; it can measure the evaluator, not answers")
    return finish(reading, [_example(group, task, reading) for group in groups])


def _parse(line: str, number: int, labelled: bool, reading: ReadLog) -> _PassageLine | None:
    question, found, rest = line.partition(SEPARATOR)
    passage, tab, label = rest.rpartition("\t") if labelled else (rest, "", "")
    if not found or not question.strip():
        reading.refuse(number, f"it is not 'question{SEPARATOR}passage'")
    elif labelled and (not tab or label.strip() not in {"0", "1"}):
        reading.refuse(number, f"it does not end with a tab and a label 0 or 1: {line[-20:]!r}")
    else:
        return _PassageLine(number, question.strip(), passage, int(label) if labelled else None)
    return None


def _example(group: list[_PassageLine], task: TaskName, reading: ReadLog) -> Example:
    number, question = group[0].number, group[0].question
    entries = []
    for line in group:
        title, found, text = line.passage.partition(" // ")
        entry = (
            {"title": title, "text": text}
            if found and task != "popqa"
            else {"title": "", "text": line.passage}
        )
        entries.append(entry if line.label is None else {**entry, "label": line.label})
    return Example(f"line-{number}", task, question, (), documents(entries, number, reading))


def _note_sizes(groups: list[list[_PassageLine]], reading: ReadLog) -> None:
    """Note questions with another number of passages than most have."""
    if not groups:
        return
    usual = Counter(map(len, groups)).most_common(1)[0][0]
    for group in groups:
        if len(group) != usual:
            reading.repair(f"other than {usual} passages for the question", group[0].number)
