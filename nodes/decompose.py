"""Split a question into the parts that are looked up one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from crag.answering.model_calls import aask
from crag.correction.decomposition import parts_by_rule, read_parts
from crag.events import Event, event
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State, SubQuestion, Usage
from crag.text.untrusted import neutral

_NODE = "decompose"
_CALLS_WITHOUT_PLAN = 2
"""With no more left, all are for the answer."""


class PlanUpdate(TypedDict):
    """Written by `decompose`."""

    sub_questions: list[SubQuestion]
    events: list[Event]
    usage: Usage


@dataclass(frozen=True)
class Decompose:
    """Plan the parts of a question, with one model call, or by a rule where there is no model.

    The parts are at most `Settings.sub_questions`. A model that fails, or whose reply is no plan,
    leaves the question whole, and records it. The tasks of the papers are not split.
    """

    model: ChatModel | None
    prompts: Prompts = PACKAGED

    async def run(self, state: State, settings: Settings) -> PlanUpdate:
        """Write the parts, none of them asked yet."""
        question, most = state["question"], settings.sub_questions
        if not (settings.cites and most > 1) or is_behind_another(state):
            return _update([question])
        if self.model is None:
            return _update(parts_by_rule(question, most))
        if settings.calls_left(state) <= _CALLS_WITHOUT_PLAN:
            detail = f"max_llm_calls is {settings.max_llm_calls}, so no model plans the parts"
            skipped = event("decompose_skipped", _NODE, detail, "split the question by a rule")
            return _update(parts_by_rule(question, most), skipped)
        values = {"question": neutral(question), "most": str(most)}
        reply = await aask(self.model, self.prompts.render("decompose", **values))
        problem = reply.detail
        if reply.problem is None:
            parts = read_parts(reply.text, most, settings.max_question_characters)
            if parts is not None:
                return _update(parts if len(parts) > 1 else [question], usage=reply.usage)
            problem = f"the model's reply is no list of questions: {reply.text[:80]!r}"
        failed = event("decompose_failed", _NODE, problem, "ask the question whole")
        return _update([question], failed, usage=reply.usage)


def _update(parts: Sequence[str], *events: Event, usage: Usage | None = None) -> PlanUpdate:
    return PlanUpdate(
        sub_questions=[planned(part) for part in parts], events=list(events), usage=usage or Usage()
    )


def is_behind_another(state: State) -> bool:
    """Return whether the question is a follow-up that was completed without a model.

    The question before may stand in front of it, and is no part of it.
    """
    follow_up = state.get("follow_up")
    is_skipped = any(one["kind"] == "contextualize_skipped" for one in state.get("events", []))
    return is_skipped and follow_up is not None and follow_up["asked"] != state["question"]


def planned(part: str) -> SubQuestion:
    """Return a part that has not been asked yet."""
    return SubQuestion(
        question=part, asked="", action=None, thresholds=None, scores=[], query="", answer="",
        abstained=False, citations=[],
    )  # fmt: skip
