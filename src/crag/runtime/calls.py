"""Calls of parts that may fail or take too long, without ending the run: an event instead.

The exceptions that third-party code raises cannot be listed, so `Attempt` is the one place that
catches all of them. What retrievers and evaluators are passed and return is put right here too.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from traceback import format_exception
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever
from langgraph.errors import GraphBubbleUp

from crag.correction.evidence import paragraph_in_context
from crag.correction.strips import LOWEST, STRIPS_KEPT, kept_best, strip_passage, with_title
from crag.errors import CragError, EvaluatorError
from crag.events import Event, describe, event, redact
from crag.parts import Evaluator, Passage, is_reading
from crag.plain import plain_json, said, well_formed
from crag.reading import Reading, sliced
from crag.settings import Settings
from crag.state import Strip, Usage

logger = logging.getLogger(__name__)
_CANCELLED = ContextVar("cancelled", default=threading.Event())  # noqa: B039 - that one is never set
"""Set when the run was cancelled, in whose context this is."""
Given = ParamSpec("Given")
Result = TypeVar("Result")
Item = TypeVar("Item")


@contextmanager
def cancellable() -> Iterator[None]:
    """Let no call begin in threads that are started here when the caller has been cancelled."""
    cancelled = threading.Event()
    token = _CANCELLED.set(cancelled)
    try:
        yield
    except asyncio.CancelledError:
        cancelled.set()
        raise
    finally:
        _CANCELLED.reset(token)


class Attempt(AbstractContextManager["Attempt"]):
    """Catch the exception of a call made in its ``with`` block, so the node can continue.

    LangGraph's own signals, such as an interrupt for a human, are raised, and so is what is no
    `Exception`: the cancellation of the run, before which no call begins, and Ctrl-C.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        """Begin, unless the run was cancelled."""
        if _CANCELLED.get().is_set():
            raise asyncio.CancelledError
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        """Catch what the part raised."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return False
        self.error = error
        logger.warning("%s failed: %s", self.what, describe(error))
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s", redact(said("".join(format_exception(error)))))
        return True


def within(
    seconds: float, function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Return what `function` returns, called in a daemon thread, which is left to itself if late.

    Raises:
        TimeoutError: it took longer than `seconds`.
    """
    future: Future[Result] = Future()
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(function, *args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            future.set_exception(error)

    threading.Thread(target=work, daemon=True, name="crag-call").start()
    try:
        return future.result(timeout=seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no answer within {seconds:g} seconds") from None


def options_of(retriever: BaseRetriever | None, settings: Settings) -> dict[str, Any]:
    """Return the settings that the retriever's `invoke` takes as keyword arguments.

    A retriever names them in its attribute `run_settings`. One of a vector store without that
    attribute takes `k`; every other one takes none.
    """
    own = ("k",) if isinstance(retriever, VectorStoreRetriever) else ()
    return {name: getattr(settings, name) for name in getattr(retriever, "run_settings", own)}


def plain_documents(found: Iterable[Document], most: int) -> list[Document]:
    """Return at most `most` documents, their metadata as plain JSON, which every store keeps.

    Equal texts under one title stand once, as copies would crowd out what else was found. The
    metadata `also` of the first one names the places of the others.
    """
    documents: dict[tuple[str, ...], Document] = {}
    for document in islice(found, most):
        text, metadata = well_formed(document.page_content), plain_json(document.metadata)
        under = (str(metadata.get(name) or "") for name in ("title", "section"))
        own = Document(id=document.id, page_content=text, metadata=metadata)
        first = documents.setdefault((*under, *text.casefold().split()), own)
        if first is not own and isinstance(also := first.metadata.setdefault("also", []), list):
            address = str(metadata.get("url") or metadata.get("source") or "")
            also.append({"source": address, "position": str(metadata.get("position") or "")})
    return list(documents.values())


class Judged(NamedTuple):
    """What came of passages, in order, with events and usage of the call."""

    scores: list[float]
    readings: list[Reading]
    """Those of an evaluator that reads; none after a failure."""
    events: list[Event]
    usage: Usage


def as_many(found: Iterable[Item], expected: int, part: str) -> list[Item]:
    """Return what a part returned, one for each of the `expected` inputs.

    Raises:
        CragError: it returned more or fewer.
    """
    items = list(found)
    if len(items) != expected:
        raise CragError(f"the {part} returned {len(items)} results for {expected} inputs")
    return items


def readings_of(evaluator: Evaluator, question: str, passages: Sequence[Passage]) -> list[Reading]:
    """Ask an evaluator for passages, all in one call; one that does not read only gives scores."""
    if not passages:
        return []
    if is_reading(evaluator):
        return as_many(evaluator.read(question, passages), len(passages), "evaluator")
    texts = [with_title(passage.title, passage.text) for passage in passages]
    scores = as_many(evaluator.score(question, texts), len(passages), "evaluator")
    return [Reading(score=float(score), evidence="", span=None) for score in scores]


def judge_passages(
    evaluator: Evaluator, question: str, passages: Sequence[Passage], *, node: str
) -> Judged:
    """Score `passages`, and read them if the evaluator does, in one call.

    Empty texts score -1.0 without a call, and so does what could not be scored, with an event.
    """
    readings = [Reading(score=LOWEST, evidence="", span=None)] * len(passages)
    asked = [place for place, passage in enumerate(passages) if passage.text.strip()]
    problem: object = None
    with Attempt("evaluator") as attempt:
        found = readings_of(evaluator, question, [passages[place] for place in asked])
        for place, told in zip(asked, found, strict=True):
            reading = sliced(told, 0, len(passages[place].text), told["score"])
            if math.isfinite(reading["score"]):
                readings[place] = reading
            else:
                problem = "the evaluator returned a score that is no number"
    scores = [reading["score"] for reading in readings]
    usage = Usage(evaluator_calls=1, evaluated_texts=len(asked)) if asked else Usage()
    if (problem := attempt.error or problem) is None:
        return Judged(scores, readings if is_reading(evaluator) else [], [], usage)
    fallback = f"texts without a score count {LOWEST}"
    return Judged(scores, [], [event("evaluator_failed", node, problem, fallback)], usage)


def thresholds_of(evaluator: Evaluator) -> tuple[float, float]:
    """Return the upper and the lower threshold of an evaluator; some load only now.

    Raises:
        EvaluatorError: they are no numbers in order.
    """
    upper, lower = (float(evaluator.thresholds[name]) for name in ("upper", "lower"))
    if not lower <= upper:
        raise EvaluatorError(f"its upper threshold, {upper}, must not be below the lower, {lower}")
    return upper, lower


def filter_strips(
    evaluator: Evaluator, question: str, strips: Sequence[Strip], settings: Settings, *, node: str
) -> tuple[list[Strip], list[Event], Usage]:
    """Score all `strips` in one call and keep the best (CRAG, Sec. 4.4).

    An evaluator that reads scores them by their evidence, also short ones, but in benchmarks as the
    paper. Unless the settings say from which score on, it is -0.5, as in the paper, or on another
    scale than from -1 to 1 the evaluator's lower threshold.
    """
    reads = is_reading(evaluator) and not settings.profile.benchmark
    passages = [
        Passage(one["source"]["title"], one["text"]) if reads else strip_passage(one, settings)
        for one in strips
    ]
    scores, readings, events, usage = judge_passages(evaluator, question, passages, node=node)
    scored: list[Strip] = [
        {**strip, "score": score} for strip, score in zip(strips, scores, strict=True)
    ]
    if reads and readings:
        scored = list(map(paragraph_in_context, strips, readings))
    elif "strip_threshold" not in settings.model_fields_set and not events:
        with Attempt("evaluator"):  # Of which `grade` tells.
            upper, lower = thresholds_of(evaluator)
            if not (LOWEST <= lower <= 0 and upper <= -LOWEST):
                settings = settings.model_copy(update={"strip_threshold": lower})
    count = settings.strips_kept or STRIPS_KEPT
    return kept_best(scored, count, settings.strip_threshold), events, usage
