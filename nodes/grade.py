"""Judge the retrieved documents and choose the action."""

from langchain_core.documents import Document
from typing_extensions import TypedDict

from crag.correction.action import decide, limits, replaced
from crag.correction.provenance import title_of
from crag.correction.scoring import score_passages
from crag.events import Event, event
from crag.parts import Evaluator, Passage
from crag.settings import Settings
from crag.state import Action, State, Thresholds, Usage


class GradeUpdate(TypedDict):
    """Written by `grade`."""

    scores: list[float]
    thresholds: Thresholds
    action: Action
    events: list[Event]
    usage: Usage


class Grade:
    """Score all documents in one evaluator call, and judge the set by its best score.

    CRAG, Sec. 4.2 (evaluator) and 4.3 (action trigger).
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def run(self, state: State, settings: Settings) -> GradeUpdate:
        """Write the scores in the order of the documents, the thresholds in use and the action."""
        passages = [_passage(document, settings) for document in state["documents"]]
        question = settings.profile.bare_question(state)
        scores, events, usage = score_passages(self._evaluator, question, passages, node="grade")
        own = self._evaluator.thresholds
        upper, lower = limits(own["upper"], own["lower"], settings)
        judged = decide(scores, upper, lower)
        action = replaced(judged, settings)
        return GradeUpdate(
            scores=scores,
            thresholds=Thresholds(upper=upper, lower=lower),
            action=action,
            events=events + _replacement(judged, action),
            usage=usage,
        )


def _passage(document: Document, settings: Settings) -> Passage:
    title = "" if settings.titles == "none" else title_of(document)
    return Passage(title, document.page_content)


def _replacement(judged: Action, action: Action) -> list[Event]:
    if judged == action:
        return []
    detail = f"the scores say {judged}; the ablation setting replaces it"
    return [event("action_replaced", "grade", detail, action)]
