"""Split a question into the parts that are looked up one by one."""

from dataclasses import dataclass

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from crag.answering.model_calls import Reply, aask
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
        reply = None
        if self.model is not None and _may_ask(state, settings):
            reply = await aask(self.model, self._prompt(state, settings))
        parts, events = self._parts(state["question"], reply, settings)
        usage = reply.usage if reply else Usage()
        return PlanUpdate(
            sub_questions=[planned(part) for part in parts], events=events, usage=usage
        )

    def _prompt(self, state: State, settings: Settings) -> list[AnyMessage]:
        question, most = neutral(state["question"]), str(settings.sub_questions)
        return self.prompts.render("decompose", question=question, most=most)

    def _parts(
        self, question: str, reply: Reply | None, settings: Settings
    ) -> tuple[list[str], list[Event]]:
        if not _splits(settings):
            return [question], []
        if self.model is None:
            return parts_by_rule(question, settings.sub_questions), []
        if reply is None:
            detail = f"max_llm_calls is {settings.max_llm_calls}, so no model plans the parts"
            skipped = event("decompose_skipped", _NODE, detail, "split the question by a rule")
            return parts_by_rule(question, settings.sub_questions), [skipped]
        problem = reply.detail
        if reply.problem is None:
            longest = settings.max_question_characters
            parts = read_parts(reply.text, settings.sub_questions, longest)
            if parts is not None:
                return (parts if len(parts) > 1 else [question]), []
            problem = f"the model's reply is no list of questions: {reply.text[:80]!r}"
        return [question], [event("decompose_failed", _NODE, problem, "ask the question whole")]


def planned(part: str) -> SubQuestion:
    """Return a part that has not been asked yet."""
    return SubQuestion(
        question=part, asked="", action=None, thresholds=None, scores=[], query="", answer="",
        abstained=False, citations=[],
    )  # fmt: skip


def _may_ask(state: State, settings: Settings) -> bool:
    left = settings.max_llm_calls - state.get("usage", {}).get("llm_calls", 0)
    return _splits(settings) and left > _CALLS_WITHOUT_PLAN


def _splits(settings: Settings) -> bool:
    return settings.cites and settings.sub_questions > 1
