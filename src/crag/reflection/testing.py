"""A reflecting model scripted by tables, for tests of programs that build on these graphs."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from crag.errors import ModelError
from crag.parts import Candidate, Continuation, Decision, Passage, Prefix, SegmentLimits
from crag.reflection.spending import spend
from crag.reflection_tokens import (
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)
from crag.state import Ending, Usage

Table = Mapping[tuple[str, str | None], Candidate]
"""By what was answered so far and the text of the passage, None without one."""


def fake_decision(retrieve: float) -> Decision:
    """Return a decision with this probability of ``[Retrieval]``, the rest on the opposite."""
    emitted = RETRIEVAL if retrieve > 1 - retrieve else NO_RETRIEVAL
    return Decision({RETRIEVAL: retrieve, NO_RETRIEVAL: 1 - retrieve}, emitted)


def fake_candidate(  # noqa: PLR0913 - one for each critique
    text: str,
    *,
    relevance: float | None = 0.9,
    support: float | None = 0.9,
    utility: int | None = 5,
    mean_log_probability: float = -0.1,
    ending: Ending = "end",
) -> Candidate:
    """Return a candidate whose shares of relevant and of fully supported are as given.

    `utility` is the grade, with probability 1. None: the model wrote no such token.
    """
    return Candidate(
        text,
        None if relevance is None else {RELEVANT: relevance, IRRELEVANT: 1 - relevance},
        None if support is None else {FULLY: support, PARTIALLY: 0.0, NO_SUPPORT: 1 - support},
        None if utility is None else {t: float(t == f"[Utility:{utility}]") for t in UTILITY},
        mean_log_probability,
        len(text.split()),
        ending,
    )


class FakeReflection:
    """Return the candidates of a table or function, and decisions by what was answered so far.

    A prefix that no table contains gets the decision `otherwise`, or an empty candidate. Each call
    is reported to `crag.reflection.spending`; after `fails_after` of them all others fail.
    """

    def __init__(
        self,
        candidates: Table | Callable[[Prefix, Passage | None], Candidate],
        decisions: Mapping[str, Decision] | None = None,
        *,
        otherwise: Decision | None = None,
        approximation: str = "",
        fails_after: int | None = None,
    ) -> None:
        self._candidates, self._decisions = candidates, dict(decisions or {})
        self._otherwise = otherwise or fake_decision(0.9)
        self.approximation = approximation
        self._fails_after, self._calls = fails_after, 0
        self.decided: list[Prefix] = []
        """What each decision was asked for."""
        self.generated: list[tuple[Prefix, tuple[Passage | None, ...], SegmentLimits]] = []
        """What candidates were asked for: one entry for each run of continuations of one prefix."""
        self.batches: list[int] = []
        """How many continuations each call for candidates had."""

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the decisions of the table."""
        self._call()
        self.decided += prefixes
        return [self._decisions.get(prefix.answered, self._otherwise) for prefix in prefixes]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one candidate for each continuation, in order."""
        self._call()
        self.batches.append(len(continuations))
        for prefix, run in groupby(continuations, key=lambda continuation: continuation.prefix):
            passages = tuple(continuation.passage for continuation in run)
            self.generated.append((prefix, passages, limits))
        return [self._candidate(*continuation) for continuation in continuations]

    def _candidate(self, prefix: Prefix, passage: Passage | None) -> Candidate:
        if callable(self._candidates):
            return self._candidates(prefix, passage)
        key = (prefix.answered, passage.text if passage else None)
        return self._candidates.get(key, Candidate("", {}, None, None, 0.0, 0, "end"))

    def _call(self) -> None:
        if self._fails_after is not None and self._calls >= self._fails_after:
            raise ModelError("fake", "failed", "it is set to fail")
        self._calls += 1
        spend(Usage(llm_calls=1))
