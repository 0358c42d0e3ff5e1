"""Turn the JSON rows of any format into examples of each task."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from crag.papers.bench.examples import JSON, Example, TaskName
from crag.papers.loading import fields
from crag.papers.loading.read_log import JsonRow, ReadLog, UnusableRowError

_PASSAGES = ("ctxs", "top_contexts", "documents", "docs")
_IDS = ("id", "sample_id", "q_id", "question_id", "qid", "claim_id")
_KEPT = ("action", "relation", "prop", "subj", "s_pop", "topic", "cat")
"""Fields that `Example.extra` keeps under their own names, where a row has them."""


def builder(task: TaskName) -> Callable[[JsonRow, int, ReadLog], Example]:
    """Return what turns a row of `task` into an example; it raises `UnusableRowError`."""

    def build(row: JsonRow, number: int, reading: ReadLog) -> Example:
        _check_task(row, task)
        match task:
            case "arc":
                return _arc(row, number, reading)
            case "pubhealth":
                verdict = fields.verdict(row, number, reading)
                question = fields.text(row, "question", "claim")
                return _example(row, task, number, reading, question, ((verdict,),))
            case "biography":
                return _biography(row, number, reading)
            case "asqa":
                return _asqa(row, number, reading)
            case "popqa" | "triviaqa" | "qa":
                answers = _answers(row)
                return _example(row, task, number, reading, fields.text(row, "question"), answers)

    return build


def task_of(row: JsonRow) -> TaskName | Literal["pairs"]:
    """Guess the task of a row; `qa` unless the row matches another one."""
    if "choices" in row or "answerKey" in row:
        return "arc"
    if "qa_pairs" in row:
        return "asqa"
    if "topic" in row and "cat" in row:
        return "biography"
    if {"s_wiki_title", "subj", "s_pop"} & row.keys():
        return "popqa"
    if "claim" in row or _verdicts(row):
        return "pubhealth"
    return "pairs" if {"text", "label"} <= row.keys() else "qa"


def _verdicts(row: JsonRow) -> bool:
    answers = row.get("answers")
    return (
        isinstance(answers, list)
        and bool(answers)
        and set(map(str, answers))
        <= {
            "true",
            "false",
            "SUPPORTS",
            "REFUTES",
        }
    )


def _check_task(row: JsonRow, task: TaskName) -> None:
    """Reject a row that looks like another task; `qa` accepts any open question."""
    found = task_of(row)
    if found == "pairs":
        raise UnusableRowError("it is a labelled pair for training evaluators, not a question")
    open_ended = found in {"qa", "popqa"} and task in {"qa", "popqa", "triviaqa"}
    if task == found or (found == "qa" and task in {"pubhealth", "biography"}):
        return
    if not open_ended or (found, task) == ("popqa", "triviaqa"):
        message = f"it looks like a row of the task {found!r}, not {task!r}"
        raise UnusableRowError(message)


def _example(  # noqa: PLR0913, PLR0917 - the parts of one example
    row: JsonRow,
    task: TaskName,
    number: int,
    reading: ReadLog,
    question: str,
    answers: tuple[tuple[str, ...], ...],
    choices: tuple[tuple[str, str], ...] = (),
    more: Mapping[str, JSON] | None = None,
) -> Example:
    extra = {key: row[key] for key in _KEPT if row.get(key) is not None}
    return Example(
        id=fields.identity(row, number, *_IDS),
        task=task,
        question=question,
        answers=answers,
        documents=fields.documents(fields.objects(row, *_PASSAGES), number, reading),
        choices=choices,
        gold_titles=_gold_titles(row),
        extra=extra | dict(more or {}),
    )


def _gold_titles(row: JsonRow) -> tuple[str, ...]:
    titles = [row.get("s_wiki_title"), row.get("subject_title"), row.get("topic")]
    return tuple(dict.fromkeys(title for title in titles if isinstance(title, str) and title))


def _answers(row: JsonRow) -> tuple[tuple[str, ...], ...]:
    """Return the answers; may be empty if the row labels its documents or action."""
    if row.get("answers") is not None:
        answers = fields.texts(row, "answers")
        if answers or _labelled(row):
            return (answers,) if answers else ()
        raise UnusableRowError("'answers' is empty, and there is no label or action")
    if _labelled(row):
        return ()
    return (fields.texts(row, "answers"),)


def _labelled(row: JsonRow) -> bool:
    entries: list[Any] = fields.objects(row, *_PASSAGES) or []
    return "action" in row or any("label" in entry or "answer" in entry for entry in entries)


def _arc(row: JsonRow, number: int, reading: ReadLog) -> Example:
    options = fields.choices(row, number, reading)
    key = fields.answer_key(row, options, number, reading)
    question = fields.text(row, "question")
    return _example(row, "arc", number, reading, question, ((key,),), options)


def _biography(row: JsonRow, number: int, reading: ReadLog) -> Example:
    """Make an example from a record of FActScore; a judge checks answers, so there are none."""
    question = fields.text(row, "input", "question")
    topic = row.get("topic") or row.get("entity") or _person(question)
    example = _example(row, "biography", number, reading, question, (), (), {"topic": topic})
    return example._replace(gold_titles=(topic,))


def _person(question: str) -> str:
    """Return NAME from a question of the form ``Who is NAME?`` (CRAG, footnote on Biography)."""
    if question.startswith("Who is ") and question.endswith("?"):
        return question.removeprefix("Who is ").removesuffix("?")
    raise UnusableRowError("'topic' is missing: the name of the person")


def _asqa(row: JsonRow, number: int, reading: ReadLog) -> Example:
    """Make an example from an item of ALCE: short answers by sub-question, and long references."""
    pairs = fields.objects(row, "qa_pairs")
    if not pairs:
        raise UnusableRowError("'qa_pairs' is empty; it must contain the short answers")
    answers = tuple(fields.texts(pair, "short_answers") for pair in pairs)
    if not all(answers):
        raise UnusableRowError("a sub-question has no short answer")
    references = [
        fields.text(one, "long_answer") for one in fields.objects(row, "annotations") or []
    ]
    if isinstance(row.get("answer"), str) and row["answer"].strip():
        references = references or [row["answer"].strip()]
    more: dict[str, JSON] = {
        "references": references,
        "reference": row.get("answer") or next(iter(references), ""),
    }
    return _example(row, "asqa", number, reading, fields.text(row, "question"), answers, (), more)
