"""Ask your own questions of your own index, and judge what came: `crag evaluate`.

A question says what is right by its answers, or by the files that hold the answer, or by being
marked as unanswerable. Answers are compared as in SQuAD: without case, punctuation and articles.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from typing_extensions import TypedDict

from crag.answering.citations import strips_of
from crag.answering.context import kept_strips
from crag.asking.matching import normalised_match
from crag.asking.running import AnswerRow, Graph, Run, in_order, run_question
from crag.correction.provenance import source_of
from crag.errors import DataError
from crag.plain import all_well_formed
from crag.settings import Settings
from crag.state import OfferedPassage, Source, Strip

Verdict = Literal["right", "wrong", "abstained", "unjudged", "failed"]
"""Unjudged: it was answered, and the file does not say what is right."""
Lost = Literal["not retrieved", "not kept", "not sure", "not answered", ""]
"""Where the evidence of a failure was lost; empty if it was not, or nobody knows."""


class Question(NamedTuple):
    """One line of the file."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    """Any of them is right."""
    files: tuple[str, ...] = ()
    """Ends of paths of the files that hold the answer."""
    evidence: tuple[str, ...] = ()
    """Quotations that hold the answer; without any, a text that has an answer in it counts."""
    answerable: bool = True
    """Off: only an abstention is right."""


class FoundDocument(TypedDict):
    """A document, with what the evaluator said of it."""

    place: str
    title: str
    text: str
    score: float | None
    holds: bool
    """Whether it holds the answer, or is of one of the files."""


class Judgement(TypedDict):
    """What the judge says of one answer; None where it does not apply, or could not be judged."""

    supported: float | None
    """Share of the answer's statements that the kept strips say."""
    relevant: bool | None
    agrees: bool | None
    """Whether it says the same as a right answer; None without any."""
    problem: str
    """Why there is no judgement; empty if there is one, or nothing to judge."""


class Row(AnswerRow):
    """What came of one question, as it is written to a file."""

    question: str
    answers: list[str]
    files: list[str]
    answerable: bool
    verdict: Verdict
    lost: Lost
    thresholds: dict[str, float]
    documents: list[FoundDocument]
    strips: list[Strip]
    """Kept ones, then dropped ones."""
    retrieved: bool | None
    """Whether a document holds the answer; None if the run failed, or nobody said what is right."""
    kept: bool | None
    """Whether a kept strip holds it."""
    judgement: Judgement | None
    """What the judge says, if there is one."""


class Summary(TypedDict):
    """The report in numbers; rates are shares from 0 to 1, None without anything to count."""

    questions: int
    verdicts: dict[str, int]
    outcomes: dict[str, int]
    """By `outcome`."""
    actions: dict[str, int]
    lost: dict[str, int]
    right: float | None
    """Of those that are judged; an abstention is right only for an unanswerable question."""
    right_interval: list[float] | None
    """The 95 % score interval (Wilson, 1927), which has a width also where all are right."""
    retrieved: float | None
    kept: float | None
    """Of those whose documents held the evidence."""
    unsupported: float | None
    """Sentences that no kept strip supports, of the answers that cite: the mean share."""
    llm_calls: float
    """A question."""
    tokens: float
    seconds: float


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """Read questions, one JSON object on a line.

    `question` is required. `answers` (or `answer`), `files` (or `file`) and `evidence` are a text
    or a list of texts, `answerable` is true or false, `id` a text or a number.

    Raises:
        DataError: the file, or a line of it, cannot be used.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")  # A text may hold other separators.
    except OSError as error:
        raise DataError(path, f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(path, "it is not in UTF-8: save it as UTF-8") from error
    found = [
        _question(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()
    ]
    if not found:
        raise DataError(path, 'it holds no question: write lines such as {"question": "…"}')
    return found[:limit]


async def evaluate(
    graph: Graph,
    questions: Sequence[Question],
    settings: Settings,
    *,
    concurrency: int = 4,
    progress: Callable[[int], object] = lambda _: None,
) -> list[Row]:
    """Answer the questions, `concurrency` at a time; return a row for each, in order.

    A run that fails gives a row that says so. `progress` receives the number done.
    """

    async def answer(question: Question) -> Row:
        return row_of(question, await run_question(graph, question.question, settings), settings)

    return await in_order(questions, answer, concurrency=concurrency, progress=progress)


def row_of(question: Question, run: Run, settings: Settings) -> Row:
    """Judge the final state of a run."""
    state = run.state
    texts = state.get("documents") or []
    scores = state.get("scores") or [None] * len(texts)  # Plain retrieval gives none.
    documents = [
        _found(question, source_of(document, place), document.page_content, score)
        for place, (document, score) in enumerate(zip(texts, scores, strict=True))
    ]
    kept = _read(state, settings) if state else []
    strips = [*(state.get("internal") or []), *(state.get("external") or [])]
    known = bool(state and (question.evidence or question.answers or question.files))
    retrieved = any(one["holds"] for one in documents) if known else None
    held = any(_holds(question, one["source"], one["text"]) for one in kept) if known else None
    verdict = _verdict(question, run)
    return Row(
        **run.row(question.id),
        question=question.question,
        answers=list(question.answers),
        files=list(question.files),
        answerable=question.answerable,
        verdict=verdict,
        lost=_lost(question, state, verdict, retrieved=retrieved, kept=held),
        thresholds=dict(state.get("thresholds") or {}),
        documents=documents,
        strips=[*kept, *(one for one in strips if not one["kept"])],
        retrieved=retrieved,
        kept=held,
        judgement=None,
    )


def is_right(row: Row) -> bool:
    """Return whether the row is right: answered so, or abstained from what has no answer."""
    return row["verdict"] == "right"


def is_failure(row: Row) -> bool:
    """Return whether somebody should read the row."""
    return row["verdict"] in {"wrong", "abstained", "failed"}


def summarise(rows: Sequence[Row]) -> Summary:
    """Count the rows."""
    judged = [float(is_right(row)) for row in rows if row["verdict"] != "unjudged"]
    kept = [bool(row["kept"]) for row in rows if row["retrieved"]]
    return Summary(
        questions=len(rows),
        verdicts=dict(Counter(row["verdict"] for row in rows)),
        outcomes=dict(Counter(row["outcome"] for row in rows if row["outcome"])),
        actions=dict(Counter(row["action"] for row in rows if row["action"])),
        lost=dict(Counter(row["lost"] for row in rows if row["lost"])),
        right=mean(judged),
        right_interval=_score_interval(int(sum(judged)), len(judged)) if judged else None,
        retrieved=mean([row["retrieved"] for row in rows]),
        kept=mean(kept),
        unsupported=mean([row["unsupported"] for row in rows]),
        llm_calls=_spent(rows, "llm_calls"),
        tokens=_spent(rows, "input_tokens", "output_tokens"),
        seconds=mean([row["seconds"] for row in rows]) or 0.0,
    )


def _score_interval(right: int, judged: int) -> list[float]:
    z = NormalDist().inv_cdf(0.975)
    middle = (right + z**2 / 2) / (judged + z**2)
    half = z / (judged + z**2) * (right * (judged - right) / judged + z**2 / 4) ** 0.5
    return [max(0.0, middle - half), min(1.0, middle + half)]


def _question(path: Path, number: int, line: str) -> Question:
    try:
        given = all_well_formed(json.loads(line))
    except ValueError as error:
        raise DataError(path, f"it is no JSON: {error}", number) from error
    if not isinstance(given, dict):
        raise DataError(path, "write an object in braces", number)
    asked = given.get("question")
    if not isinstance(asked, str) or not asked.strip():
        raise DataError(path, f"'question' is {asked!r}; it must be a text", number)
    identity = number if given.get("id") is None else given["id"]
    if not isinstance(identity, str | int | float):
        raise DataError(path, f"'id' is {identity!r}; write a text or a number", number)
    answerable = given.get("answerable", True)
    if not isinstance(answerable, bool):
        raise DataError(path, f"'answerable' is {answerable!r}; write true or false", number)
    return Question(
        id=str(identity),
        question=asked.strip(),
        answers=_texts(path, number, given, "answers", "answer"),
        files=_texts(path, number, given, "files", "file"),
        evidence=_texts(path, number, given, "evidence"),
        answerable=answerable,
    )


def _texts(path: Path, number: int, given: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        value = given.get(name)
        values = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise DataError(path, f"{name!r} is {value!r}; write a list of texts", number)
        found += [one.strip() for one in values if one.strip()]
    return tuple(found)


def _read(state: Mapping[str, Any], settings: Settings) -> list[Strip]:
    """Return the strips that were kept; Self-RAG keeps none, and reads whole passages."""
    passages: Sequence[OfferedPassage] = state.get("passages") or []
    kept = kept_strips(state, settings)  # type: ignore[arg-type]
    return kept or [strip for passage in passages for strip in strips_of(passage)]


def _found(question: Question, source: Source, text: str, score: float | None) -> FoundDocument:
    place = f"{source['url']}, {source['position']}".strip(", ")
    holds = _holds(question, source, text)
    return FoundDocument(place=place, title=source["title"], text=text, score=score, holds=holds)


def _holds(question: Question, source: Source, text: str) -> bool:
    if wanted := question.evidence or question.answers:
        return normalised_match(text, wanted)
    return _is_of(source["url"], question.files)


def _is_of(url: str, files: Sequence[str]) -> bool:
    place = "/" + unquote(url.partition("#")[0]).strip("/")
    return any(place.endswith("/" + file.removeprefix("./").strip("/")) for file in files)


def _verdict(question: Question, run: Run) -> Verdict:
    if run.error:
        return "failed"
    state = run.state
    is_likely = state.get("outcome") == "likely"
    if not question.answerable:
        return "right" if is_likely or state.get("abstained") else "wrong"
    if state.get("abstained"):
        return "abstained"
    if question.answers:
        right = normalised_match(str(state.get("answer") or ""), question.answers)
    elif question.files:
        cited = state.get("citations") or []
        right = any(_is_of(one["source"]["url"], question.files) for one in cited)
    else:
        return "unjudged"
    if right:
        return "right"
    return "abstained" if is_likely else "wrong"  # What is likely claims nothing.


def _lost(
    question: Question,
    state: Mapping[str, Any],
    verdict: Verdict,
    *,
    retrieved: bool | None,
    kept: bool | None,
) -> Lost:
    if verdict not in {"wrong", "abstained"} or not question.answerable or retrieved is None:
        return ""
    if kept:  # From the web, too.
        return "not sure" if _shows(question, state) else "not answered"
    return "not kept" if retrieved else "not retrieved"


def _shows(question: Question, state: Mapping[str, Any]) -> bool:
    """Return whether the passages that are shown as likely hold the answer."""
    wanted = question.evidence or question.answers
    shown = state.get("outcome") == "likely"
    return shown and normalised_match(str(state.get("answer") or ""), wanted)


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are there, None without any."""
    given = [float(value) for value in values if value is not None]
    return sum(given) / len(given) if given else None


def _spent(rows: Sequence[Row], *names: str) -> float:
    return mean([sum(row["usage"].get(name, 0) for name in names) for row in rows]) or 0.0
