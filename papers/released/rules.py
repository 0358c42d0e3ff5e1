"""Self-RAG's released programs as rules and as a beam search, each quirk if `compat` names it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from crag.papers.released.reflection import (
    RELEASED_DRAFT_TOKENS,
    Compat,
    first_block,
    long_form_score,
    released_answer,
    released_lead,
    released_ratio,
    released_segment,
    remap_ratio,
    remapped,
    short_form_score,
    spaced,
)
from crag.parts import Candidate, Continuation, Decision, Prefix, SegmentLimits
from crag.reflection.beam import ENDINGS, BeamSearch, Child, as_written, joined
from crag.reflection.driver import Asked, Driver
from crag.reflection.retrieval_decision import compared, followed
from crag.reflection.rules import Rules
from crag.reflection.scoring import CritiqueScores, doubt_of, retrieve_ratio
from crag.reflection_tokens import CONTINUE, NO_RETRIEVAL, NO_SUPPORT, RETRIEVAL
from crag.state import Choice, Critique, Ending, Flag, Hypothesis

_NUMBERED = {"released_citations", "released_biography"}


class ReleasedSearch(BeamSearch):
    """A beam search that takes some of its steps as the released program does."""

    _settings: Any

    def _has(self, name: Compat) -> bool:
        return name in self._settings.compat

    def _deepest(self) -> int:
        return max(1, super()._deepest() - self._has("depth_counts_root"))

    def _finished(self) -> list[Hypothesis]:
        return [] if self._has("deepest_level") else super()._finished()

    def _asks(self, hypothesis: Hypothesis) -> bool:
        if self._has("released_search"):
            return hypothesis["ending"] != "retrieve" and self._has("released_remap")
        return super()._asks(hypothesis)

    def _next_choice(self, hypothesis: Hypothesis, decision: Decision | None) -> Choice | None:
        """Decide before a later segment; without a ``[Retrieval]`` the released search ends."""
        choice: Choice | None
        if decision is not None and self._has("released_remap"):
            choice = compared(decision, self._settings, remap_ratio(decision.retrieve))
        elif self._has("released_search"):
            choice = followed(hypothesis["ending"], can_continue=False)
        else:
            return super()._next_choice(hypothesis, decision)
        ends = self._has("released_search") and choice["action"] != "retrieve"
        return None if ends else choice

    def _is_whole(self, choices: Mapping[int, Choice], depth: int) -> bool:
        first = depth == 0 and choices[0]["action"] == "no_retrieve"
        return (self._has("released_search") and first) or super()._is_whole(choices, depth)

    def _generates_whole(self, *, is_whole: bool) -> bool:
        return is_whole or self._has("whole_continuation")

    def _children(
        self, at: int, candidates: Sequence[tuple[int | None, Candidate]], *, is_whole: bool
    ) -> list[Child]:
        """Extend a hypothesis; a child but the first may remember the text of its sibling."""
        children = super()._children(at, candidates, is_whole=is_whole)
        if not self._has("sibling_leak"):
            return children
        parent, leaked, sibling = self._beam["pool"][at], list[Child](), ""
        last = "".join(as_written(critique) for critique in self._of(parent)[-1:])
        before = parent["context"].removesuffix(last)
        for child in children:
            hypothesis, critique = child.hypothesis, child.critique
            if leaked and critique and len(hypothesis["critiques"]) > len(parent["critiques"]):
                context = before + sibling + as_written(critique)
                hypothesis = {**hypothesis, "context": context}
            sibling = critique["text"] if critique else ""
            leaked.append(child._replace(hypothesis=hypothesis))
        return leaked

    def _cut(self, candidate: Candidate, *, is_whole: bool) -> tuple[str, Ending]:
        if not self._has("whole_continuation"):
            return super()._cut(candidate, is_whole=is_whole)
        if is_whole:
            return candidate.text, candidate.ending
        text = candidate.text
        if self._has("released_remap"):
            text = remapped(candidate, self._settings.delta)
        text, token, _ = text.partition(RETRIEVAL)
        return text, "retrieve" if token else candidate.ending

    def _scored(self, candidate: Candidate, *, has_passage: bool) -> CritiqueScores:
        return long_form_score(candidate, self._settings, has_passage=has_passage)

    def _extended(
        self, parent: Hypothesis, critique: Critique, *, done: bool, ending: Ending
    ) -> Hypothesis:
        """Return the parent with one more segment, with `released_ranking` whatever it says."""
        if not self._has("released_ranking"):
            return super()._extended(parent, critique, done=done, ending=ending)
        return Hypothesis(
            context=parent["context"] + as_written(critique),
            critiques=[*parent["critiques"], len(self._critiques) - 1],
            done=done,
            ending=ending,
        )

    def _ends(self, candidate: Candidate, ending: Ending) -> bool:
        whole = self._has("whole_continuation")
        if self._has("released_search"):
            decides = self._has("released_remap") and not whole and ending not in ENDINGS
            return ending != "retrieve" and not decides
        # IsUse may follow the part that a whole continuation is cut to.
        return ending in ENDINGS if whole else super()._ends(candidate, ending)

    def _ranked(self, children: Sequence[Child]) -> list[Child]:
        """Rank by the score alone with `released_ranking`; nothing is merged."""
        if not self._has("released_ranking"):
            return super()._ranked(children)
        return sorted(children, key=lambda child: -self._score(child.hypothesis))

    def _score(self, hypothesis: Hypothesis) -> float:
        totals = [critique["total"] for critique in self._of(hypothesis)]
        match self._settings.accumulation:
            case "sum":
                return math.fsum(totals)
            case "product":
                return math.prod(totals) if totals else 0.0
            case _:
                return super()._score(hypothesis)

    def _best(self) -> Hypothesis:
        """Return the best hypothesis; with `released_citations` the second if it is empty."""
        best, *others = self._beam["pool"]
        if not self._has("released_citations") or not others:
            return best
        return best if _with_spaces(self._supported(self._of(best))) else others[0]

    def _joined(self, critiques: Sequence[Critique]) -> tuple[str, list[int], list[Flag]]:
        """Join segments to an answer with the quirks that `compat` names."""
        alone = all(critique["passage"] is None for critique in critiques)
        if self._has("cut_at_blank_line") and alone:
            critiques = [{**one, "text": first_block(one["text"])} for one in critiques]
        if not (self._has("released_citations") or self._has("released_biography")):
            ignores = self._settings.ignore_no_support
            kept = [one for one in critiques if not (ignores and doubt_of(one) == NO_SUPPORT)]
            return joined(kept)
        if alone:
            return " ".join(released_segment(one["text"]) for one in critiques), [], []
        kept = self._supported(critiques)
        if self._has("released_biography"):
            return spaced(_with_spaces(kept)), [], []
        answer, cited = _cited(kept)
        return answer, cited, []

    def _supported(self, critiques: Sequence[Critique]) -> list[Critique]:
        """Leave out those that say they are unsupported, if the settings want that."""
        ignores = self._settings.ignore_no_support
        return [one for one in critiques if not (ignores and NO_SUPPORT in one["text"])]


def _with_spaces(critiques: Sequence[Critique]) -> str:
    """Join texts with a space, one of which the released program puts before the first."""
    return released_segment(" ".join(["", *(critique["text"] for critique in critiques)]))


def _cited(critiques: Sequence[Critique]) -> tuple[str, list[int]]:
    """Number citations by the place of their segment.

    The released program appends to the list of passages only for segments that it does not skip, so
    after one that repeats another the numbers no longer match the list. A segment that is left with
    no words is cited all the same.
    """
    answer, said, cited = "", set[str](), list[int]()
    for number, critique in enumerate(critiques, start=1):
        text = released_segment(critique["text"])
        if not critique["text"] or text in said:
            continue
        said.add(text)
        if critique["passage"] is None:
            answer += f"{text} "
            continue
        answer += f"{text[:-1]} [{number}]. "
        cited.append(critique["passage"])
    answer = spaced(answer.removesuffix(" ")).replace(f".{CONTINUE}", " [1]. ")
    return answer.replace(". [1] ", " [1]. "), cited


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
