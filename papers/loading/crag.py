"""The CRAG repository's folders: questions, options, passages and knowledge, joined by line.

A folder such as ``data/arc_challenge`` holds `sources` (a question in each line), `choices`,
`retrieved_psgs` and ``ref/{correct,incorrect,ambiguous}``. It has no answers: put Self-RAG's
evaluation file of the same task next to `sources` to join it by question. Its other files,
``question [SEP] passage`` line by line, are read by `crag.papers.loading.crag_pairs`.
The faults of the published files are listed in docs/method/paper-and-code.md.
"""

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from crag.errors import DataError
from crag.papers.bench.examples import Example, Loaded, TaskName
from crag.papers.loading.crag_knowledge import Aligned, read_knowledge
from crag.papers.loading.crag_lines import choices_of, passages_of, read_beside
from crag.papers.loading.files import read_lines
from crag.papers.loading.published_json import read_self_rag
from crag.papers.loading.read_log import ReadLog, UnusableRowError, finish

SOURCES, CHOICES, PASSAGES = "sources", "choices", "retrieved_psgs"
_NOTHING = Loaded([], [], [])


def read(path: Path, task: TaskName, *, as_published: bool = False) -> Loaded:
    """Read a folder of the repository; every file must align with the questions.

    With `as_published` questions and knowledge are what the official program reads, to the letter,
    line by line and with all faults.

    Raises:
        DataError: a file is missing, unreadable, or belongs to other questions.
    """
    if not (path / SOURCES).is_file():
        raise DataError(path, f"it has no file {SOURCES!r}, with a question in each line")
    reading = ReadLog(path)
    lines = read_lines(path / SOURCES, reading)
    questions = [line.strip() if as_published else " ".join(line.split()) for line in lines]
    knowledge = read_knowledge(path, questions, as_published=as_published)
    gold = _gold(path, task)
    if gold is None:
        reading.repair("no answers; put Self-RAG's evaluation file of this task in the folder")
    examples = _examples(path, questions, knowledge, task, gold, reading)
    loaded = finish(reading, examples)
    notes = [note for one in knowledge for note in one.notes]
    _, refused, more = gold or _NOTHING
    return Loaded(loaded.examples, [*loaded.refused, *refused], [*loaded.notes, *notes, *more])


def _examples(  # noqa: PLR0913, PLR0917 - the files of one folder
    path: Path,
    questions: Sequence[str],
    knowledge: Sequence[Aligned],
    task: TaskName,
    gold: Loaded | None,
    reading: ReadLog,
) -> list[Example]:
    passages = read_beside(path / PASSAGES, questions, reading)
    options = read_beside(path / CHOICES, questions, reading, overlapping=False)
    waiting = _by_question(gold.examples) if gold else None
    examples = []
    for place, question in enumerate(questions):
        try:
            _check_lines(knowledge, place)
            example = _joined(question, place, task, waiting)
            if options and not example.choices:
                example = example._replace(choices=choices_of(options[place], place + 1, reading))
            if passages and not example.documents:
                found = passages_of(passages[place], place + 1, task, reading)
                example = example._replace(documents=found)
        except UnusableRowError as error:
            reading.refuse(place + 1, str(error))
        else:
            examples.append(_informed(example, knowledge, place))
    return examples


def _check_lines(knowledge: Sequence[Aligned], place: int) -> None:
    """Refuse a question after the last line of a file, as the official program leaves it out."""
    if any(place >= len(one.texts) for one in knowledge):
        raise UnusableRowError("a knowledge file ends before it")


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


def _by_question(examples: Sequence[Example]) -> dict[str, deque[Example]]:
    """Group by the question as in `sources`: on one line, and as "who is" for biographies."""
    groups: dict[str, deque[Example]] = {}
    for example in examples:
        topic = example.extra.get("topic")
        asked = f"Who is {topic}?" if example.task == "biography" else example.question
        groups.setdefault(" ".join(asked.split()), deque()).append(example)
    return groups


def _informed(example: Example, knowledge: Sequence[Aligned], place: int) -> Example:
    found = {one.name: one.text_of(place) for one in knowledge}
    texts = {name: text for name, text in found.items() if text is not None}
    unmarked = [one.name for one in knowledge if place in one.unmarked]
    extra = {**example.extra, "unmarked": unmarked} if unmarked else example.extra
    return example._replace(knowledge=texts, extra=extra)


def _gold(path: Path, task: TaskName) -> Loaded | None:
    """Read the one evaluation file of the folder, if there is one."""
    files = sorted(file for file in path.iterdir() if file.suffix in {".jsonl", ".json"})
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise DataError(path, f"which file has the answers? It holds {names}; leave one")
    return read_self_rag(files[0], task) if files else None
