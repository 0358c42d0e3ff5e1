"""Long form: a beam search over segments (Self-RAG, Algorithm 1 and Sec. 3.3).

For each hypothesis that is not done: decide, ask for passages, generate one segment for each. All
of a round are scored, hypotheses that say the same are merged, and the best stay, finished ones
among them. Time, tokens and depth are bounded; what ends the search early is a flag of the outcome.
"""

import time
from collections.abc import Callable, Sequence
from typing import Self

from crag.errors import ModelError
from crag.reflection.assembling import assemble
from crag.reflection.backend import Candidate, Decision, Prefix, SegmentLimits
from crag.reflection.deciding import (
    Verdict,
    needs_decision,
    needs_next_decision,
    next_verdict,
    opening_verdict,
)
from crag.reflection.exchange import Asked, Decide, Generate, Judged, Steps
from crag.reflection.growing import Child, Task, children_of, kept
from crag.reflection.hypotheses import Hypothesis
from crag.reflection.options import Options
from crag.reflection.records import Choice, Critique, Flag, Outcome, SearchRecord
from crag.reflection.resuming import Kept, copied, hypothesis_from, record_of
from crag.reflection.supply import Supply

Clock = Callable[[], float]


def long_form(asked: Asked, options: Options, clock: Clock = time.monotonic) -> Steps[Outcome]:
    """Answer in segments by a beam search; `clock` gives seconds.

    A `ModelError` after the first segment ends the search with what there is.
    """
    search = Search(asked, options, clock)
    while not search.over:
        yield from search.round()
    return search.outcome()


class Search:
    """The beam, and what is written down about it; it can be put away between two rounds."""

    def __init__(self, asked: Asked, options: Options, clock: Clock = time.monotonic) -> None:
        self._asked, self._options, self._clock = asked, options, clock
        self._began = clock()
        self._depth = 0
        self._pool = [Hypothesis()]
        self._supply = Supply(asked, options)
        self._choices: list[Choice] = []
        self._critiques: list[Critique] = []
        self._tokens = 0
        self._ended: Flag | None = None

    @classmethod
    def resumed(
        cls, asked: Asked, options: Options, kept: Kept, clock: Clock = time.monotonic
    ) -> Self:
        """Return a search that goes on where `kept` left off; its passages stand for `asked`'s."""
        search, record = cls(asked, options, clock), kept.record
        search._began -= record["seconds"]
        search._depth = record["depth"]
        search._pool = [hypothesis_from(entry) for entry in record["pool"]]
        search._supply.resume(kept.passages, record["static"])
        search._choices, search._critiques = list(kept.choices), [*map(copied, kept.critiques)]
        search._supply.flags, search._tokens = list(record["flags"]), record["tokens"]
        search._ended = record["ended"]
        return search

    def put_away(self) -> Kept:
        """Return all there is as plain JSON."""
        record = SearchRecord(
            depth=self._depth,
            pool=[record_of(hypothesis) for hypothesis in self._pool],
            static=self._supply.static,
            flags=list(self._supply.flags),
            tokens=self._tokens,
            seconds=self._clock() - self._began,
            ended=self._ended,
            over=self.over,
        )
        critiques = [copied(critique) for critique in self._critiques]
        return Kept(record, list(self._choices), critiques, self._supply.offered.records())

    @property
    def over(self) -> bool:
        """Say whether no round will follow; there is always a first one."""
        if self._depth == 0:
            return False
        deepest = max(1, self._options.max_depth - ("depth_counts_root" in self._options.compat))
        done = all(hypothesis.done for hypothesis in self._pool)
        return self._ended is not None or done or self._depth >= deepest

    def round(self) -> Steps[None]:
        """Extend every hypothesis that is not done, and keep the best.

        A `ModelError` in the first round is raised, in a later one it ends the search.
        """
        depth, self._depth = self._depth, self._depth + 1
        try:
            yield from self._extend(depth)
        except ModelError:
            if depth == 0:
                raise
            self._ended = "model_failed"
        if not self.over and self._clock() - self._began >= self._options.max_reflection_seconds:
            self._ended = "time_limit"

    def _extend(self, depth: int) -> Steps[None]:
        verdicts = yield from self._verdicts(depth)
        tasks = yield from self._tasks(verdicts, depth)
        room = self._room(tasks)
        if not tasks or room < 1:
            self._ended = "token_limit" if tasks else None
            return
        answers: list[list[Candidate]] = yield [self._generate(task, room) for task in tasks]
        children: list[Child] = []
        for task, candidates in zip(tasks, answers, strict=True):
            self._tokens += sum(candidate.tokens for candidate in candidates)
            first = len(self._critiques) + len(children)
            children += children_of(task, candidates, self._supply.offered, self._options, first)
        critiques = self._prune(children)
        yield [Judged((), tuple(copied(critique) for critique in critiques))]

    def outcome(self) -> Outcome:
        """Return the best hypothesis as an answer."""
        best = self._pool[0]
        chosen = [self._critiques[segment.critique] for segment in best.segments]
        for critique in chosen:
            critique["chosen"] = True
        assembled = assemble(best.segments, self._options)
        found: dict[Flag, bool] = {
            "constraint_fallback": any("constraint_fallback" in c["flags"] for c in chosen),
            "depth_limit": self._ended is None and not best.done,
            "cut": best.ending == "length",
            "empty": not assembled.answer,
        }
        ended: list[Flag] = [self._ended] if self._ended else []
        raised: list[Flag] = [flag for flag, is_raised in found.items() if is_raised]
        flags = dict.fromkeys((*self._supply.flags, *assembled.flags, *ended, *raised))
        return Outcome(
            answer=assembled.answer,
            raw=best.answered,
            passages=self._supply.offered.records(),
            cited=assembled.cited,
            score=best.score(self._options.accumulation),
            choices=self._choices,
            critiques=self._critiques,
            flags=list(flags),
            tokens=self._tokens,
        )

    def _verdicts(self, depth: int) -> Steps[dict[int, Verdict]]:
        """Decide for each place of the beam; those for which nothing is to follow are done."""
        live = {place: h for place, h in enumerate(self._pool) if not h.done}
        asking = [place for place, h in live.items() if self._asks(h)]
        decisions: dict[int, Decision] = {}
        if asking:
            replies = yield [Decide(self._prefix(live[place])) for place in asking]
            decisions = dict(zip(asking, replies, strict=True))
        verdicts: dict[int, Verdict] = {}
        for place, hypothesis in live.items():
            verdict = self._verdict(hypothesis, decisions.get(place))
            if verdict is None:
                self._pool[place] = hypothesis._replace(done=True)
            else:
                verdicts[place] = verdict
        choices = [verdict.choice(depth, place) for place, verdict in verdicts.items()]
        self._choices += choices
        yield [Judged(tuple(choices), ())]
        return verdicts

    def _asks(self, hypothesis: Hypothesis) -> bool:
        if hypothesis.segments:
            return needs_next_decision(hypothesis.ending, self._options)
        return self._asked.decided is None and needs_decision(self._options)

    def _verdict(self, hypothesis: Hypothesis, decision: Decision | None) -> Verdict | None:
        if not hypothesis.segments:
            return opening_verdict(self._asked.decided, decision, self._options, short=False)
        can_continue = hypothesis.last_passage is not None
        return next_verdict(decision, hypothesis.ending, self._options, can_continue=can_continue)

    def _tasks(self, verdicts: dict[int, Verdict], depth: int) -> Steps[list[Task]]:
        """Give each hypothesis the passages that it is to be extended with."""
        places = [place for place, verdict in verdicts.items() if verdict.action == "retrieve"]
        searching = {place: self._pool[place] for place in places}
        found = yield from self._supply.found(searching, is_first=depth == 0)
        tasks: list[Task] = []
        for place, verdict in verdicts.items():
            hypothesis = self._pool[place]
            passages: list[int | None] = [None]
            if verdict.action == "continue":
                passages = [hypothesis.last_passage]
            elif verdict.action == "retrieve":
                passages = self._supply.offer(hypothesis, found[place])
            tasks.append(Task(place, hypothesis, tuple(passages), self._is_whole(verdict, depth)))
        return tasks

    def _is_whole(self, verdict: Verdict, depth: int) -> bool:
        """Say whether the answer is generated at once: without retrieval, never to be asked."""
        released = "released_search" in self._options.compat and depth == 0
        return self._options.retrieval_mode == "never" or (
            released and verdict.action == "no_retrieve"
        )

    def _room(self, tasks: Sequence[Task]) -> int:
        """Return how long each segment of this round may be."""
        count = sum(len(task.passages) for task in tasks)
        left = (self._options.max_reflection_tokens - self._tokens) // max(1, count)
        return min(self._options.max_segment_tokens, left)

    def _generate(self, task: Task, room: int) -> Generate:
        is_whole = task.is_whole or "whole_continuation" in self._options.compat
        passages = tuple(self._supply.offered[index] for index in task.passages)
        return Generate(self._prefix(task.hypothesis), passages, SegmentLimits(room, is_whole))

    def _prefix(self, hypothesis: Hypothesis) -> Prefix:
        passage = self._supply.offered[hypothesis.last_passage]
        return self._asked.prefix(hypothesis.answered, passage)

    def _prune(self, children: Sequence[Child]) -> list[Critique]:
        """Let the children compete with what is done, and return their critiques."""
        finished = [h for h in self._pool if h.done]
        if "deepest_level" in self._options.compat:
            finished = []
        self._pool = [child.hypothesis for child in kept(finished, children, self._options)]
        critiques = [child.critique for child in children if child.critique is not None]
        self._critiques += critiques
        return critiques
