"""Rewrite the question into a query for a web search."""

from dataclasses import KW_ONLY, dataclass

from langchain_core.messages import AnyMessage
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from crag.answering.model_calls import Reply, aask, ask
from crag.correction.queries import LONGEST, cut, keywords, read_query
from crag.events import Event, event
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State, Usage

_FALLBACK = "search for the question's keywords"


class RewriteUpdate(TypedDict):
    """Written by `rewrite`."""

    query: str
    events: list[Event]
    usage: Usage | Overwrite


@dataclass(frozen=True)
class Rewrite:
    """Extract search keywords with one model call (CRAG, Sec. 4.5), or without a model.

    The question in the state does not change: strips are scored against it, and it is answered. If
    there is no searcher (`searches` is false), no model call is made. A query has at most `longest`
    characters, the searcher's limit.

    With `opens_branch`, the counts in the state are those of the graph around: they bound the call,
    and the branch then counts from zero, since the outer graph adds its counts.
    """

    model: ChatModel | None
    prompts: Prompts = PACKAGED
    _: KW_ONLY
    searches: bool = True
    longest: int = LONGEST
    opens_branch: bool = False

    def run(self, state: State, settings: Settings) -> RewriteUpdate:
        """Write the query."""
        query, prompt = self._plan(state, settings)
        reply = ask(self.model, prompt) if self.model and prompt else None
        return self._concluded(state, settings, query, reply)

    async def arun(self, state: State, settings: Settings) -> RewriteUpdate:
        """Do the same, awaiting the model."""
        query, prompt = self._plan(state, settings)
        reply = await aask(self.model, prompt) if self.model and prompt else None
        return self._concluded(state, settings, query, reply)

    def _plan(self, state: State, settings: Settings) -> tuple[str | None, list[AnyMessage] | None]:
        """Return the query where no model is to write it, and else what a model is asked."""
        question, profile = state["question"], settings.profile
        if not (settings.variant.rewrite and self.searches and settings.max_searches):
            return cut(" ".join(question.split()), self.longest), None
        if profile.query is not None:
            return cut(profile.query(question), self.longest), None
        if settings.calls_left(state) <= 1:
            return None, None
        return None, self.prompts.render(profile.rewrite_prompt, question=question)

    def _concluded(
        self, state: State, settings: Settings, query: str | None, reply: Reply | None
    ) -> RewriteUpdate:
        events: list[Event] = []
        if query is None and reply is not None and reply.problem is None:
            query = read_query(reply.text, self.longest)
        if query is None:
            query = keywords(state["question"], self.longest)
            events = [self._why_keywords(settings, reply)]
        usage = Usage() if reply is None else reply.usage
        spent = Overwrite(usage) if self.opens_branch else usage
        return RewriteUpdate(query=query, events=events, usage=spent)

    def _why_keywords(self, settings: Settings, reply: Reply | None) -> Event:
        if self.model is None:
            detail = "no chat model is configured to rewrite the question"
            return event("rewrite_skipped", "rewrite", detail, _FALLBACK)
        if reply is None:
            detail = f"max_llm_calls is {settings.max_llm_calls}; the last call is for the answer"
            return event("budget_exhausted", "rewrite", detail, _FALLBACK)
        failed: object = f"the model's reply is not a search query: {reply.text[:80]!r}"
        return event(
            "rewrite_failed", "rewrite", reply.detail if reply.problem else failed, _FALLBACK
        )
