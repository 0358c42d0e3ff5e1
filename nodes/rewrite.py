"""Rewrite the question into a query for a web search."""

from dataclasses import KW_ONLY, dataclass

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from crag.answering.model_calls import aask
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

    async def run(self, state: State, settings: Settings) -> RewriteUpdate:
        """Write the query."""
        profile, question = settings.profile, state["question"]
        if not (settings.variant.rewrite and self.searches) or settings.max_searches == 0:
            return self._update(cut(" ".join(question.split()), self.longest))
        if profile.query is not None:
            return self._update(cut(profile.query(question), self.longest))
        usage = Usage()
        if self.model is None:
            detail = "no chat model is configured to rewrite the question"
            reason = event("rewrite_skipped", "rewrite", detail, _FALLBACK)
        elif settings.calls_left(state) <= 1:
            detail = f"max_llm_calls is {settings.max_llm_calls}; the last call is for the answer"
            reason = event("budget_exhausted", "rewrite", detail, _FALLBACK)
        else:
            prompt = self.prompts.render(profile.rewrite_prompt, question=question)
            reply = await aask(self.model, prompt)
            usage, failed = reply.usage, reply.detail
            if reply.problem is None:
                query = read_query(reply.text, self.longest)
                if query is not None:
                    return self._update(query, usage=usage)
                failed = f"the model's reply is not a search query: {reply.text[:80]!r}"
            reason = event("rewrite_failed", "rewrite", failed, _FALLBACK)
        return self._update(keywords(question, self.longest), reason, usage=usage)

    def _update(self, query: str, *events: Event, usage: Usage | None = None) -> RewriteUpdate:
        spent = usage or Usage()
        return RewriteUpdate(
            query=query,
            events=list(events),
            usage=Overwrite(spent) if self.opens_branch else spent,
        )
