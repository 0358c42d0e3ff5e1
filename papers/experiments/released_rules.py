"""The rules that `compat` brings back: "released" of the entry points `crag.reflection`."""

from crag.papers.experiments.released_reflection import (
    RELEASED_DRAFT_TOKENS,
    first_block,
    released_answer,
    released_lead,
    released_ratio,
    short_form_score,
)
from crag.papers.experiments.released_search import ReleasedSearch
from crag.parts import Candidate, Decision, Prefix, SegmentLimits
from crag.reflection.driver import AskCandidates, Asked, Steps
from crag.reflection.rules import Rules
from crag.reflection.scoring import CritiqueScores, retrieve_ratio
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import CONTINUE, NO_RETRIEVAL, RETRIEVAL
from crag.state import Flag


class ReleasedRules(Rules):
    """Each rule as a released program has it, if `compat` names it."""

    search = ReleasedSearch

    def __init__(self, settings: ReflectionSettings) -> None:
        super().__init__(settings)
        self._compat = settings.compat
        self._has_released_text = "released_text" in settings.compat
        # The released program compares empty answers like any other.
        self.empty_answers_compete = self._has_released_text

    def scored(self, candidate: Candidate, *, has_passage: bool) -> CritiqueScores:
        """Score a whole answer of the short form."""
        return short_form_score(candidate, self.settings, has_passage=has_passage)

    def share(self, decision: Decision, *, opens_short: bool = False) -> tuple[float, list[Flag]]:
        """Return the share of all three tokens, or the released ratio, which only opens answers."""
        others = (NO_RETRIEVAL, CONTINUE) if "share_of_three" in self._compat else (NO_RETRIEVAL,)
        share, flags = retrieve_ratio(decision.retrieve, others)
        if opens_short and "released_ratio" in self._compat:
            share = released_ratio(decision.retrieve)
        return share, flags

    def objection(self, prefix: Prefix) -> Steps[str]:
        """Look for ``[Retrieval]`` in a draft."""
        if "released_draft" not in self._compat:
            return ""
        limits = SegmentLimits(RELEASED_DRAFT_TOKENS, whole_answer=True, is_draft=True)
        drafts: list[Candidate] = (yield [AskCandidates(prefix, (None,), limits)])[0]
        is_wanted = RETRIEVAL in first_block(drafts[0].text)
        return "" if is_wanted else f"a draft of {limits.max_tokens} tokens lacks {RETRIEVAL}"

    def compared(self, text: str, asked: Asked, *, has_passage: bool) -> str:
        """Keep the tokens of answers to open questions that have a passage."""
        if not self._has_released_text:
            return super().compared(text, asked, has_passage=has_passage)
        return released_answer(text) if asked.closed or not has_passage else text

    def shown(self, answer: str) -> str:
        """Remove what the released script removes at the very end."""
        return released_lead(answer) if self._has_released_text else answer
