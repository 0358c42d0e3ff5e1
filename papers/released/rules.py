"""The rules of Self-RAG's released programs, each if the setting `compat` names it."""

from typing import Any

from crag.papers.released.reflection import (
    RELEASED_DRAFT_TOKENS,
    first_block,
    released_answer,
    released_lead,
    released_ratio,
    short_form_score,
)
from crag.papers.released.search import ReleasedSearch
from crag.parts import Candidate, Continuation, Decision, Prefix, SegmentLimits
from crag.reflection.driver import Asked, Driver
from crag.reflection.rules import Rules
from crag.reflection.scoring import CritiqueScores, retrieve_ratio
from crag.reflection_tokens import CONTINUE, NO_RETRIEVAL, RETRIEVAL

_NUMBERED = {"released_citations", "released_biography"}


class ReleasedRules(Rules):
    """Each rule as a released program has it; all settings are `ReleasedSettings`.

    With no name in `compat` they are our own.
    """

    search = ReleasedSearch

    def scored(self, candidate: Candidate, settings: Any, *, has_passage: bool) -> CritiqueScores:
        """Score a whole answer of the short form."""
        return short_form_score(candidate, settings, has_passage=has_passage)

    def share(self, decision: Decision, settings: Any, *, opens_short: bool = False) -> float:
        """Return the share of all three tokens, or the released ratio, which only opens answers."""
        if opens_short and "released_ratio" in settings.compat:
            return released_ratio(decision.retrieve)
        over_three = "share_of_three" in settings.compat
        others = (NO_RETRIEVAL, CONTINUE) if over_three else (NO_RETRIEVAL,)
        return retrieve_ratio(decision.retrieve, others)

    def objection(self, prefix: Prefix, driver: Driver) -> str:
        """Look for ``[Retrieval]`` in a draft."""
        settings: Any = driver.settings
        if "released_draft" not in settings.compat:
            return ""
        limits = SegmentLimits(RELEASED_DRAFT_TOKENS, whole_answer=True, is_draft=True)
        draft = driver.candidates([Continuation(prefix, None)], limits)[0]
        is_wanted = RETRIEVAL in first_block(draft.text)
        return "" if is_wanted else f"a draft of {limits.max_tokens} tokens lacks {RETRIEVAL}"

    def compared(self, text: str, asked: Asked, settings: Any, *, has_passage: bool) -> str:
        """Keep the tokens of answers to open questions that have a passage."""
        if "released_text" not in settings.compat:
            return super().compared(text, asked, settings, has_passage=has_passage)
        return released_answer(text) if asked.closed or not has_passage else text

    def shown(self, answer: str, settings: Any) -> str:
        """Remove what the released script removes at the very end."""
        return released_lead(answer) if "released_text" in settings.compat else answer

    def empty_compete(self, settings: Any) -> bool:
        """Return whether empty answers are compared like any other, as the released script does."""
        return "released_text" in settings.compat

    def checks(self, settings: Any) -> bool:
        """Return whether answers are checked, which no released program does."""
        return not settings.compat

    def cites_as_written(self, settings: Any) -> bool:
        """Return whether a released program has put the numbers into the answer."""
        return bool(_NUMBERED & settings.compat)
