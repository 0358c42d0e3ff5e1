"""Rewrite the question into a query for a web search."""

from dataclasses import KW_ONLY, dataclass

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from crag.answering.model_calls import Reply, aask
from crag.correction.queries import LONGEST, cut, keywords, read_query
from crag.events import Event, event
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State, Usage, fresh_usage

_FALLBACK = "search for the question's keywords"


class RewriteUpdate(TypedDict):
    """Written by `rewrite`."""

    query: str
    events: list[Event]
    usage: Usage


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

    async def run(self, state: State, settings: Settings) -> RewriteUpdate:
        """Write the query."""
        planned = self._without_call(state, settings)
        if planned is not None or self.model is None:
            return planned or self._as_it_is(state, settings)
        return self._read(state, settings, await aask(self.model, self._prompt(state, settings)))

    def _without_call(self, state: State, settings: Settings) -> RewriteUpdate | None:
        """Return the update if no model is needed, otherwise None."""
        if not (settings.rewrite and self.searches) or settings.max_searches == 0:
            return self._as_it_is(state, settings)
        if settings.profile.query is not None:
            query = settings.profile.query(settings.profile.bare_question(state))
            return self._update(cut(query, self.longest))
        if self.model is None:
            detail = "no chat model is configured to rewrite the question"
            skipped = event("rewrite_skipped", "rewrite", detail, _FALLBACK)
            return self._by_keywords(state, settings, skipped)
        spent = state.get("usage", {}).get("llm_calls", 0)
        if spent + 2 > settings.max_llm_calls:
            detail = f"max_llm_calls is {settings.max_llm_calls}; the last call is for the answer"
            exhausted = event("budget_exhausted", "rewrite", detail, _FALLBACK)
            return self._by_keywords(state, settings, exhausted)
        return None

    def _prompt(self, state: State, settings: Settings) -> list[AnyMessage]:
        profile = settings.profile
        question = profile.bare_question(state)
        return self.prompts.render(profile.rewrite_prompt, question=question)

    def _read(self, state: State, settings: Settings, reply: Reply) -> RewriteUpdate:
        detail = reply.detail
        if reply.problem is None:
            query = read_query(reply.text, self.longest)
            if query is not None:
                return self._update(query, usage=reply.usage)
            detail = f"the model's reply is not a search query: {reply.text[:80]!r}"
        failed = event("rewrite_failed", "rewrite", detail, _FALLBACK)
        return self._by_keywords(state, settings, failed, usage=reply.usage)

    def _by_keywords(
        self, state: State, settings: Settings, reason: Event, *, usage: Usage | None = None
    ) -> RewriteUpdate:
        query = keywords(settings.profile.bare_question(state), self.longest)
        return self._update(query, reason, usage=usage)

    def _as_it_is(self, state: State, settings: Settings) -> RewriteUpdate:
        question = " ".join(settings.profile.bare_question(state).split())
        return self._update(cut(question, self.longest))

    def _update(self, query: str, *events: Event, usage: Usage | None = None) -> RewriteUpdate:
        spent = usage or Usage()
        return RewriteUpdate(
            query=query,
            events=list(events),
            usage=fresh_usage(spent) if self.opens_branch else spent,
        )
