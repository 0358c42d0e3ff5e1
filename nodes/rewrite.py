"""Rewrite the question into a query for a web search."""

from dataclasses import dataclass

from langchain_core.messages import AnyMessage

from crag.answering.model_calls import Reply, aask, ask
from crag.correction.queries import keywords, read_query
from crag.events import event
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State


@dataclass(frozen=True)
class Rewrite:
    """Extract search keywords with one model call (CRAG, Sec. 4.5), or without a model.

    The question in the state does not change: strips are scored against it, and it is answered.
    """

    model: ChatModel | None
    prompts: Prompts = PACKAGED

    def run(self, state: State, settings: Settings) -> State:
        """Write the query."""
        query, prompt = self._plan(state["question"], settings)
        reply = ask(self.model, prompt) if self.model and prompt else None
        return _concluded(state["question"], query, reply)

    async def arun(self, state: State, settings: Settings) -> State:
        """Do the same, awaiting the model."""
        query, prompt = self._plan(state["question"], settings)
        reply = await aask(self.model, prompt) if self.model and prompt else None
        return _concluded(state["question"], query, reply)

    def _plan(self, question: str, settings: Settings) -> tuple[str, list[AnyMessage]]:
        """Return the query where no model is to write it, and else what a model is asked."""
        profile = settings.profile
        if not settings.variant.rewrite:
            return " ".join(question.split()), []
        if profile.query is not None:
            return profile.query(question), []
        if self.model is None:
            return "", []
        return "", self.prompts.render(profile.rewrite_prompt, question=question)


def _concluded(question: str, query: str, reply: Reply | None) -> State:
    if reply is None:
        return State(query=query or keywords(question))
    written = read_query(reply.text, question)
    if reply.problem is None and written:
        return State(query=written, usage=reply.usage)
    unread = f"the model's reply is not a search query: {reply.text[:80]!r}"
    detail = reply.detail if reply.problem else unread
    failed = event("rewrite_failed", "rewrite", detail, "search for the question's keywords")
    return State(query=keywords(question), events=[failed], usage=reply.usage)
