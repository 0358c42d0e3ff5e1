"""Turn JSON rows of questions into examples: Self-RAG's files, ALCE's ASQA, and our own.

Self-RAG's are JSON lines with passages under `ctxs` (Self-RAG, App. B.2). PopQA, TriviaQA and
PubHealth have `question` and `answers`, ARC `choices` and `answerKey`, the biographies `input` and
`topic`. ALCE's ASQA is a JSON list of items with `qa_pairs`, `annotations` and `docs`, which
Self-RAG ships under ``data``. Passages are GTR's best hundred or oracle ones; the published runs
use the first five.

Ours are JSON lines with `question`, `answers` and `documents` (`title` and `text`). A document may
have `label` (it is about the right thing); a row may have `id` and `subject_title`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from langchain_core.documents import Document
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from crag.papers.bench.examples import Example, Loaded, TaskName
from crag.papers.loading.files import JsonRow, ReadLog, UnusableRowError, json_rows
from crag.plain import problem_of

_PASSAGES = ("ctxs", "top_contexts", "documents", "docs")
_IDS = ("id", "sample_id", "q_id", "question_id", "qid", "claim_id")
_FEWEST, _USUAL = 3, 4
_VERDICTS = {"true": "true", "false": "false", "SUPPORTS": "true", "REFUTES": "false"}


def _listed(given: object) -> object:
    """Let one text stand for a list of it, and leave out what a list says twice."""
    values = [given] if isinstance(given, str) else given
    return list(dict.fromkeys(values)) if isinstance(values, list) else values


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_listed)]


class _Options(BaseModel):
    label: list[Annotated[str, StringConstraints(strip_whitespace=True)]]
    text: list[Annotated[str, StringConstraints(strip_whitespace=True)]]


class _Pair(BaseModel):
    short_answers: Annotated[Texts, Field(min_length=1)]


class _Annotation(BaseModel):
    long_answer: Text


class _Row(BaseModel):
    """Any row, by the names that its publisher gave the fields."""

    model_config = ConfigDict(coerce_numbers_to_str=False)

    id: Annotated[str, Field(coerce_numbers_to_str=True)] = Field(
        "", validation_alias=AliasChoices(*_IDS)
    )
    question: Text | None = Field(None, validation_alias=AliasChoices("question", "claim"))
    input: Text | None = None
    answers: Texts | None = None
    passages: list[dict[str, Any]] = Field([], validation_alias=AliasChoices(*_PASSAGES))
    choices: _Options | None = None
    answer_key: Text | None = Field(None, validation_alias="answerKey")
    qa_pairs: list[_Pair] | None = Field(None, min_length=1)
    annotations: list[_Annotation] = []
    topic: str | None = Field(None, validation_alias=AliasChoices("topic", "entity"))


def read_rows(path: Path, task: TaskName) -> Loaded:
    """Build an example from each row of a file; skip unusable rows, and ids that are repeated.

    Raises:
        DataError: no row can be used.
    """
    log, kept = ReadLog(path), dict[str, Example]()
    for number, row in json_rows(path, log):
        try:
            example = example_of(row, task, number, log)
        except UnusableRowError as error:
            log.refuse(number, str(error))
            continue
        if example.id in kept:
            log.refuse(number, f"the id {example.id!r} was already used by another row")
        kept.setdefault(example.id, example)
    return log.finish(list(kept.values()))


def example_of(row: JsonRow, task: TaskName, number: int, log: ReadLog) -> Example:
    """Return the example of a row.

    Raises:
        UnusableRowError: a field of its task is missing or wrong.
    """
    try:
        read = _Row.model_validate({name: one for name, one in row.items() if one is not None})
    except ValidationError as error:
        raise UnusableRowError(problem_of(error, "the row")) from error
    titles = [row.get("s_wiki_title"), row.get("subject_title"), row.get("topic")]
    question = read.input or read.question if task == "biography" else read.question
    made = Example(
        id=read.id.strip() or f"row-{number}",
        task=task,
        question=_needed("question", question),
        answers=(),
        documents=documents(read.passages, number, log),
        gold_titles=tuple(dict.fromkeys(one for one in titles if isinstance(one, str) and one)),
    )
    match task:
        case "arc":
            return _arc(made, read, number, log)
        case "pubhealth":
            return made._replace(answers=((_verdict(row, read, number, log),),))
        case "biography":
            topic = read.topic or _person(made.question)
            return made._replace(gold_titles=(topic,), topic=topic)
        case "asqa":
            return _asqa(made, row, read)
        case "popqa" | "triviaqa" | "qa":
            return made._replace(answers=_answers(read))


def _needed(name: str, value: Any) -> Any:
    if value is None:
        raise UnusableRowError(f"{name}: it is missing")
    return value


def _answers(read: _Row) -> tuple[tuple[str, ...], ...]:
    """Return the answers."""
    if read.answers:
        return (read.answers,)
    raise UnusableRowError("'answers' is empty")


def _verdict(row: JsonRow, read: _Row, number: int, log: ReadLog) -> str:
    """Return whether a claim is `true` or `false`, from `answers` or `label`."""
    if isinstance(row.get("label"), bool):
        return str(row["label"]).lower()
    given = read.answers if read.answers is not None else (row.get("label"),)
    if len(given) != 1 or given[0] not in _VERDICTS:
        raise UnusableRowError(f"the verdict is {given!r}; it must be one of {[*_VERDICTS]}")
    if given[0] != _VERDICTS[given[0]]:
        log.repair("read SUPPORTS as true and REFUTES as false", number)
    return _VERDICTS[given[0]]


def _arc(made: Example, read: _Row, number: int, log: ReadLog) -> Example:
    """Keep options and key as published; it must be the label of an option."""
    options = _needed("choices", read.choices)
    if len(options.label) != len(options.text):
        counts = f"{len(options.label)} labels cannot belong to {len(options.text)} options"
        raise UnusableRowError(counts)
    pairs = tuple(zip(options.label, options.text, strict=True))
    key = _needed("answerKey", read.answer_key)
    choices = checked_choices(pairs, number, log)
    if key not in options.label:
        raise UnusableRowError(f"the answer key {key!r} is not among the labels {options.label}")
    if key not in "ABCDE":
        log.repair("numeric answer key; only the mapped score can use it", number)
    return made._replace(answers=((key,),), choices=choices)


def checked_choices(
    pairs: Sequence[tuple[str, str]], number: int, log: ReadLog
) -> tuple[tuple[str, str], ...]:
    """Return the options; repeated labels are an error, unusual numbers and labels are noted."""
    labels = [label for label, _ in pairs]
    if len(set(labels)) != len(labels) or len(labels) < _FEWEST:
        raise UnusableRowError(f"the options are labelled {labels}; each needs its own label")
    if len(pairs) != _USUAL:
        log.repair(f"{len(pairs)} options; the published prompts have A to D", number)
    return tuple(pairs)


def _person(question: str) -> str:
    """Return NAME from a question of the form ``Who is NAME?`` (CRAG, footnote on Biography)."""
    if question.startswith("Who is ") and question.endswith("?"):
        return question.removeprefix("Who is ").removesuffix("?")
    raise UnusableRowError("topic: it is missing, the name of the person")


def _asqa(made: Example, row: JsonRow, read: _Row) -> Example:
    """Add the short answers by sub-question, and the long references."""
    pairs = _needed("qa_pairs", read.qa_pairs)
    answer = row["answer"].strip() if isinstance(row.get("answer"), str) else ""
    references = tuple(one.long_answer for one in read.annotations) or (answer,) * bool(answer)
    return made._replace(
        answers=tuple(pair.short_answers for pair in pairs), references=references,
        reference=answer or next(iter(references), ""),
    )  # fmt: skip


def documents(
    entries: Iterable[Mapping[str, Any]], number: int, log: ReadLog
) -> tuple[Document, ...]:
    """Turn passages into documents, in order; skip and count empty ones.

    `label` is whether the page is right.
    """
    made = []
    for position, entry in enumerate(entries):
        text = entry.get("text")
        if not isinstance(text, str) or not text.strip():
            log.repair("skipped passages without text", number)
            continue
        try:
            text.encode()
        except UnicodeEncodeError as error:  # Half an emoji, left by broken escapes.
            raise UnusableRowError("'text' holds half a character") from error
        metadata: dict[str, Any] = {
            "title": str(entry.get("title") or "").strip(),
            "id": str(entry.get("id") or f"passage-{position + 1}"),
            "position": position,
        }
        if isinstance(entry.get("url"), str):
            metadata["url"] = entry["url"]
        if isinstance(entry.get("label"), int | float):
            metadata["relevant"] = entry["label"] > 0
        made.append(Document(text.strip(), metadata=metadata))
    if not made:
        log.repair("kept although it has no passage", number)
    return tuple(made)
