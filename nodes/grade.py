"""Judge the retrieved documents and choose the action."""

from collections.abc import Sequence

from langchain_core.documents import Document

from crag.correction.action import decide, limits
from crag.correction.provenance import passage_of
from crag.events import event
from crag.parts import Evaluator
from crag.reading import Reading
from crag.runtime.calls import Attempt, judge_passages, thresholds_of
from crag.settings import Settings
from crag.state import State, Thresholds

_ALL_AMBIGUOUS = 1.0, -1.0
"""For an evaluator without thresholds of its own: its scores alone say neither of the others."""


def grade(state: State, settings: Settings, evaluator: Evaluator) -> State:
    """Score all documents in one evaluator call, and judge the set by its best score.

    CRAG, Sec. 4.2 (evaluator) and 4.3 (action trigger). An evaluator that reads is asked for
    readings, from which refinement and quotations take their scores.
    """
    passages = [passage_of(document, settings.variant.titles) for document in state["documents"]]
    question = state["question"]
    scores, readings, events, usage = judge_passages(evaluator, question, passages, node="grade")
    if settings.profile.benchmark:
        readings = []
    own = _ALL_AMBIGUOUS
    with Attempt("evaluator") as attempt:
        own = thresholds_of(evaluator)
    if attempt.error is not None:
        fallback = "judge what is between -1 and 1 ambiguous"
        events = [*events, event("evaluator_failed", "grade", attempt.error, fallback)]
    upper, lower = limits(*own, settings)
    thresholds = Thresholds(upper=upper, lower=lower)
    return State(
        documents=graded(state["documents"], scores, readings),
        thresholds=thresholds,
        action=decide(scores, **thresholds),
        events=events,
        usage=usage,
    )


def graded(
    documents: Sequence[Document], scores: Sequence[float], readings: Sequence[Reading] = ()
) -> list[Document]:
    """Return the documents with score and reading, which a retriever may have written, too."""
    graded = []
    for place, (document, score) in enumerate(zip(documents, scores, strict=True)):
        metadata = {**document.metadata, "score": score}
        metadata.pop("reading", None)
        if readings:
            metadata["reading"] = readings[place]
        graded.append(document.model_copy(update={"metadata": metadata}))
    return graded
