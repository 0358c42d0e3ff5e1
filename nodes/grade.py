"""Judge the retrieved documents and choose the action."""

from langchain_core.documents import Document
from typing_extensions import TypedDict

from crag.correction.action import decide, limits, replaced
from crag.correction.scoring import score_texts, with_title
from crag.events import Event, event
from crag.parts import Evaluator
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
        """Write scores in the order of the documents, the thresholds in force and the action."""
        texts = [_passage(document, settings) for document in state["documents"]]
        question = settings.profile.bare_question(state)
        scores, events, usage = score_texts(self._evaluator, question, texts, node="grade")
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


def _passage(document: Document, settings: Settings) -> str:
    if settings.titles == "none":
        return document.page_content
    return with_title(document.metadata.get("title", ""), document.page_content)


def _replacement(judged: Action, action: Action) -> list[Event]:
    if judged == action:
        return []
    detail = f"the scores say {judged}; the ablation setting replaces it"
    return [event("action_replaced", "grade", detail, action)]
