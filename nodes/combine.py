"""Write one answer from the answers to the parts of a question."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from langchain_core.messages import AnyMessage

from crag.answering.citations import without_citations
from crag.answering.context import fenced, kept_strips, numbered
from crag.answering.emptiness import why_empty
from crag.answering.joining import joined
from crag.answering.links import without_links
from crag.answering.model_calls import Reply, aask
from crag.answering.outcome import (
    NOT_FOUND,
    UNSURE,
    GenerateUpdate,
    abstained,
    chat_reply,
    from_reply,
    is_uncited,
    links_removed,
)
from crag.correction.decomposition import without_answers
from crag.events import Event, event
from crag.parts import Attributor, ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State, Strip, Usage
from crag.text.untrusted import neutral

_NODE = "combine"
_FALLBACK = "set the answers to the parts one after the other"


class CombineUpdate(GenerateUpdate):
    """Written by `combine`; the question, which the graphs within wrote anew, is the run's own."""

    question: str


@dataclass(frozen=True)
class Combine:
    """Answer the whole with one model call over the strips of all parts.

    Without a model, or if its reply cannot be used, the answers to the parts follow one another.
    If no part was answered, the closest passages of the parts are shown.
    """

    model: ChatModel | None
    prompts: Prompts = PACKAGED
    _: KW_ONLY
    attributor: Attributor | None = None

    async def run(self, state: State, settings: Settings) -> CombineUpdate:
        """Write one answer."""
        strips = kept_strips(state, settings)
        reply = None
        if self.model is not None and _is_answered(state) and settings.calls_left(state) > 0:
            reply = await aask(self.model, self._prompt(state, strips))
        update = self._update(state, strips, reply, settings)
        return CombineUpdate(**update, question=state["question"])

    def _prompt(self, state: State, strips: Sequence[Strip]) -> list[AnyMessage]:
        return self.prompts.render(
            "combine",
            question=neutral(state["question"]),
            parts="\n".join(_told(state)),
            knowledge=fenced(strips),
            not_found=NOT_FOUND,
        )

    def _update(
        self, state: State, strips: Sequence[Strip], reply: Reply | None, settings: Settings
    ) -> GenerateUpdate:
        is_answered = _is_answered(state)
        answer, citations = joined(state["sub_questions"], strips)
        if not answer:
            return abstained(state, "", [], "no part of the question was answered")
        events: list[Event] = []
        knowledge = fenced(strips)
        if reply is not None:
            problem = str(reply.detail)
            if reply.problem is None:
                as_read = " ".join(
                    without_answers(part["question"], part["asked"])
                    for part in state["sub_questions"]
                )
                update = from_reply(
                    state, reply, knowledge, strips, question=as_read, cites=True,
                    attributor=self.attributor,
                )  # fmt: skip
                problem = _problem(state["question"], update, settings)
                if not problem:
                    return update
            events.append(event("combine_failed", _NODE, problem, _FALLBACK))
        elif self.model is not None and is_answered:
            detail = f"max_llm_calls is {settings.max_llm_calls}, so no model joins the parts"
            events.append(event("budget_exhausted", _NODE, detail, _FALLBACK))
        answer, links = without_links(answer, numbered(strips))
        events += links_removed(_NODE, links)
        if not is_answered:
            detail = "no part of the question has a sure answer"
            events.append(event("abstained", _NODE, detail, "show the closest passages"))
            answer = f"{UNSURE}\n\n{answer}"
        return GenerateUpdate(
            knowledge=knowledge, answer=answer, abstained=not is_answered,
            certainty="answered" if is_answered else "unsure", citations=citations, further=[],
            sentences=[], messages=chat_reply(state, answer, citations), events=events,
            usage=reply.usage if reply else Usage(),
        )  # fmt: skip


def _told(state: State) -> list[str]:
    """Write each part with its answer without citations, whose numbers are of that part alone."""
    return [
        f'<part number="{number}">\n{neutral(part["asked"])}\n{neutral(answer)}\n</part>'
        for number, part in enumerate(state["sub_questions"], start=1)
        for answer in [NOT_FOUND if part["abstained"] else without_citations(part["answer"])]
    ]


def _is_answered(state: State) -> bool:
    return not all(part["abstained"] for part in state["sub_questions"])


def _problem(question: str, update: GenerateUpdate, settings: Settings) -> str:
    if empty := why_empty(question, update["answer"]):
        return f"the model {empty}: {update['answer']}"
    if update["abstained"]:
        return "the model found no answer in the strips, though parts of the question have one"
    if settings.require_citations and is_uncited(update):
        return f"no strip supports a sentence of the model's answer: {update['answer']}"
    return ""
