"""The beam search with the quirks of the released long form, each if `compat` names it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from crag.papers.experiments.released_reflection import (
    first_block,
    long_form_score,
    released_segment,
    remap_ratio,
    remapped,
    spaced,
)
from crag.parts import Candidate, Decision
from crag.reflection.beam import (
    ENDINGS,
    Assembled,
    BeamSearch,
    Child,
    Extension,
    Hypothesis,
    assemble,
)
from crag.reflection.cleaning import cleaned
from crag.reflection.driver import AskCandidates
from crag.reflection.retrieval_decision import Verdict, compared, followed
from crag.reflection.rules import rules_of
from crag.reflection.scoring import CritiqueScores
from crag.reflection_settings import Compat, ReflectionSettings
from crag.reflection_tokens import CONTINUE, NO_SUPPORT, OPEN, RETRIEVAL
from crag.state import Ending, Flag, SegmentRecord


class ReleasedSearch(BeamSearch):
    """A beam search that takes some of its steps as the released program does."""

    def _has(self, name: Compat) -> bool:
        return name in self._settings.compat

    def _deepest(self) -> int:
        return max(1, super()._deepest() - self._has("depth_counts_root"))

    def _finished(self) -> list[Hypothesis]:
        return [] if self._has("deepest_level") else super()._finished()

    def _asks(self, hypothesis: Hypothesis) -> bool:
        if self._has("released_search"):
            return hypothesis.ending != "retrieve" and self._has("released_remap")
        return super()._asks(hypothesis)

    def _next_verdict(self, hypothesis: Hypothesis, decision: Decision | None) -> Verdict | None:
        """Decide before a later segment; without a ``[Retrieval]`` the released search ends."""
        verdict: Verdict | None
        if decision is not None and self._has("released_remap"):
            _, flags = rules_of(self._settings).share(decision)
            verdict = compared(decision, self._settings, remap_ratio(decision.retrieve), flags)
        elif self._has("released_search"):
            verdict = followed(hypothesis.ending, can_continue=False)
        else:
            return super()._next_verdict(hypothesis, decision)
        ends = self._has("released_search") and verdict.action != "retrieve"
        return None if ends else verdict

    def _is_whole(self, verdict: Verdict, depth: int) -> bool:
        released = self._has("released_search") and depth == 0 and verdict.action == "no_retrieve"
        return released or super()._is_whole(verdict, depth)

    def _request(self, task: Extension, room: int) -> AskCandidates:
        is_whole = task.is_whole or self._has("whole_continuation")
        return super()._request(task._replace(is_whole=is_whole), room)

    def _children(self, task: Extension, candidates: Sequence[Candidate]) -> list[Child]:
        """Extend a hypothesis; a child but the first may remember the text of its sibling."""
        children = super()._children(task, candidates)
        if not self._has("sibling_leak"):
            return children
        parent, leaked = task.hypothesis, children[:1]
        for sibling, child in pairwise(children):
            text, hypothesis = (
                cast("str", sibling.critique and sibling.critique["text"]),
                child.hypothesis,
            )
            if len(hypothesis.segments) > len(parent.segments):
                hypothesis = hypothesis._replace(before=parent.before + text)
            leaked.append(child._replace(hypothesis=hypothesis))
        return leaked

    def _cut(self, candidate: Candidate, *, is_whole: bool) -> tuple[str, Ending, bool]:
        if not self._has("whole_continuation"):
            return super()._cut(candidate, is_whole=is_whole)
        if is_whole:
            return candidate.text, candidate.ending, OPEN in candidate.text
        text = candidate.text
        if self._has("released_remap"):
            text = remapped(candidate, self._settings.delta)
        text, token, _ = text.partition(RETRIEVAL)
        return text, "retrieve" if token else candidate.ending, OPEN in text

    def _scored(self, candidate: Candidate, *, has_passage: bool) -> CritiqueScores:
        return long_form_score(candidate, self._settings, has_passage=has_passage)

    def _extended(
        self, parent: Hypothesis, segment: SegmentRecord, *, done: bool, ending: Ending
    ) -> Hypothesis:
        """Return the parent with one more segment, with `released_ranking` whatever it says."""
        if self._has("released_ranking"):
            return Hypothesis(parent.answered, (*parent.segments, segment), done, ending)
        return super()._extended(parent, segment, done=done, ending=ending)

    def _ends(self, candidate: Candidate, ending: Ending) -> bool:
        whole = self._has("whole_continuation")
        if self._has("released_search"):
            decides = self._has("released_remap") and not whole and ending not in ENDINGS
            return ending != "retrieve" and not decides
        # IsUse may follow the part that a whole continuation is cut to.
        return ending in ENDINGS if whole else super()._ends(candidate, ending)

    def _ranked(self, entries: Sequence[Child]) -> list[Child]:
        """Rank by the score alone with `released_ranking`; nothing is merged."""
        if not self._has("released_ranking"):
            return super()._ranked(entries)
        accumulation = self._settings.accumulation
        return sorted(entries, key=lambda entry: -entry.hypothesis.score(accumulation))

    def _best(self) -> Hypothesis:
        """Return the best hypothesis; with `released_citations` the second if it is empty."""
        best, *others = self._pool
        if not self._has("released_citations") or not others:
            return best
        return best if _joined(_supported(best.segments, self._settings)) else others[0]

    def _assembled(self, segments: Sequence[SegmentRecord]) -> Assembled:
        return assemble_released(segments, self._settings)


def assemble_released(segments: Sequence[SegmentRecord], settings: ReflectionSettings) -> Assembled:
    """Join segments to an answer with the quirks that `compat` names."""
    alone = all(segment["passage"] is None for segment in segments)
    if "cut_at_blank_line" in settings.compat and alone:
        blocks = [first_block(segment["text"]) for segment in segments]
        segments = [
            cast("SegmentRecord", {**segment, "text": block, "shown": cleaned(block)})
            for segment, block in zip(segments, blocks, strict=True)
        ]
    if not settings.compat & {"released_citations", "released_biography"}:
        return assemble(segments, ignore_no_support=settings.ignore_no_support)
    if alone:
        texts = (released_segment(segment["text"]) for segment in segments)
        return Assembled(" ".join(texts), [], [])
    kept = _supported(segments, settings)
    flags: list[Flag] = [] if kept else ["all_removed"]
    if "released_biography" in settings.compat:
        return Assembled(spaced(_joined(kept)), [], flags)
    return Assembled(*_cited(kept), flags)


def _supported(
    segments: Sequence[SegmentRecord], settings: ReflectionSettings
) -> list[SegmentRecord]:
    """Leave out those that say they are unsupported, if the settings want that."""
    ignores = settings.ignore_no_support
    return [segment for segment in segments if not (ignores and NO_SUPPORT in segment["text"])]


def _joined(segments: Sequence[SegmentRecord]) -> str:
    """Join texts with a space, one of which the released program puts before the first."""
    return released_segment(" ".join(["", *(segment["text"] for segment in segments)]))


def _cited(segments: Sequence[SegmentRecord]) -> tuple[str, list[int]]:
    """Number citations by the place of their segment.

    The released program appends to the list of passages only for segments that it does not skip, so
    after one that repeats another the numbers no longer match the list. A segment that is left with
    no words is cited all the same.
    """
    answer, said, cited = "", set[str](), list[int]()
    for number, segment in enumerate(segments, start=1):
        text = released_segment(segment["text"])
        if not segment["text"] or text in said:
            continue
        said.add(text)
        if segment["passage"] is None:
            answer += f"{text} "
            continue
        answer += f"{text[:-1]} [{number}]. "
        cited.append(segment["passage"])
    answer = spaced(answer.removesuffix(" ")).replace(f".{CONTINUE}", " [1]. ")
    return answer.replace(". [1] ", " [1]. "), cited
