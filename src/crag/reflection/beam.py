"""Long form: a beam search over segments (Self-RAG, Algorithm 1 and Sec. 3.3).

For each hypothesis that is not done: decide, ask for passages, generate one segment for each. All
of a round are scored, hypotheses that say the same are merged, and the best stay, finished ones
among them. Time, tokens and depth are bounded; what ends the search early is a flag of the outcome.
"""

import time
from collections.abc import Callable, Sequence

from crag.errors import ModelError
from crag.reflection.assembling import assemble
from crag.reflection.backend import Candidate, Decision, Passage, Prefix, SegmentLimits
from crag.reflection.critiques import Offered
from crag.reflection.deciding import (
    Verdict,
    first_verdict,
    needs_decision,
    needs_next_decision,
    next_verdict,
)
from crag.reflection.exchange import Asked, Decide, Generate, Judged, Retrieve, Steps
from crag.reflection.growing import Child, Task, children_of, kept
from crag.reflection.hypotheses import Hypothesis
from crag.reflection.options import Options
from crag.reflection.records import Choice, Critique, Flag, Outcome

Clock = Callable[[], float]


def long_form(asked: Asked, options: Options, clock: Clock = time.monotonic) -> Steps[Outcome]:
    """Answer in segments by a beam search; `clock` gives seconds.

    A `ModelError` after the first segment ends the search with what there is.
    """
    search = _Search(asked, options, clock)
    depth_limit = max(1, options.max_depth - ("depth_counts_root" in options.compat))
    for depth in range(depth_limit):
        if not search.may_go_on(depth):
            break
        try:
            yield from search.round(depth)
        except ModelError:
            if depth == 0:
                raise
            search.ended = "model_failed"
    return search.outcome()


class _Search:
    """The beam, and what is written down about it."""

    def __init__(self, asked: Asked, options: Options, clock: Clock) -> None:
        self._asked, self._options, self._clock = asked, options, clock
        self._latest = clock() + options.max_reflection_seconds
        self._pool = [Hypothesis()]
        self._offered = Offered()
        self._static: list[int] | None = None
        self._choices: list[Choice] = []
        self._critiques: list[Critique] = []
        self._flags: list[Flag] = []
        self._tokens = 0
        self.ended: Flag | None = None
        """What ended the search before its depth."""

    def may_go_on(self, depth: int) -> bool:
        """Say whether another round may begin; the first one always may."""
        if self.ended is None and depth and self._clock() >= self._latest:
            self.ended = "time_limit"
        return self.ended is None and not all(h.done for h in self._pool)

    def round(self, depth: int) -> Steps[None]:
        """Extend every hypothesis that is not done, and keep the best."""
        verdicts = yield from self._verdicts(depth)
        tasks = yield from self._tasks(verdicts, depth)
        room = self._room(tasks)
        if not tasks or room < 1:
            self.ended = "token_limit" if tasks else None
            return
        answers: list[list[Candidate]] = yield [self._generate(task, room) for task in tasks]
        children: list[Child] = []
        for task, candidates in zip(tasks, answers, strict=True):
            self._tokens += sum(candidate.tokens for candidate in candidates)
            first = len(self._critiques) + len(children)
            children += children_of(task, candidates, self._offered, self._options, first)
        critiques = self._prune(children)
        yield [Judged((), tuple(critique.copy() for critique in critiques))]

    def outcome(self) -> Outcome:
        """Return the best hypothesis as an answer."""
        best = self._pool[0]
        chosen = [self._critiques[segment.critique] for segment in best.segments]
        for critique in chosen:
            critique["chosen"] = True
        assembled = assemble(best.segments, self._options)
        found: dict[Flag, bool] = {
            "constraint_fallback": any("constraint_fallback" in c["flags"] for c in chosen),
            "depth_limit": self.ended is None and not best.done,
            "cut": best.ending == "length",
            "empty": not assembled.answer,
        }
        ended: list[Flag] = [self.ended] if self.ended else []
        raised: list[Flag] = [flag for flag, is_raised in found.items() if is_raised]
        flags = dict.fromkeys((*self._flags, *assembled.flags, *ended, *raised))
        return Outcome(
            answer=assembled.answer,
            raw=best.answered,
            passages=self._offered.records(),
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
        return needs_decision(self._options)

    def _verdict(self, hypothesis: Hypothesis, decision: Decision | None) -> Verdict | None:
        if not hypothesis.segments:
            return first_verdict(decision, self._options, short=False)
        can_continue = hypothesis.last_passage is not None
        return next_verdict(decision, hypothesis.ending, self._options, can_continue=can_continue)

    def _tasks(self, verdicts: dict[int, Verdict], depth: int) -> Steps[list[Task]]:
        """Give each hypothesis the passages that it is to be extended with."""
        places = [place for place, verdict in verdicts.items() if verdict.action == "retrieve"]
        found = dict(zip(places, (yield from self._found(places, depth)), strict=True))
        tasks: list[Task] = []
        for place, verdict in verdicts.items():
            hypothesis = self._pool[place]
            passages: list[int | None] = [None]
            if verdict.action == "continue":
                passages = [hypothesis.last_passage]
            elif verdict.action == "retrieve":
                passages = self._offer(hypothesis, found[place])
            tasks.append(Task(place, hypothesis, tuple(passages), self._is_whole(verdict, depth)))
        return tasks

    def _found(self, places: Sequence[int], depth: int) -> Steps[list[list[int]]]:
        """Return the passages for each place: the same for all, or those its text asks for."""
        if not places:
            return []
        given = self._asked.passages
        is_static = self._options.segment_retrieval == "static"
        if is_static or (given is not None and depth == 0):
            if self._static is None:
                passages = given
                if passages is None:
                    passages = (yield [Retrieve(self._asked.query)])[0]
                self._static = self._add(passages or ())
            return [self._static] * len(places)
        queries = [Retrieve(self._query(self._pool[place])) for place in places]
        return [self._add(passages) for passages in (yield queries)]

    def _query(self, hypothesis: Hypothesis) -> str:
        last = hypothesis.segments[-1].shown if hypothesis.segments else ""
        return f"{self._asked.query} {last}".strip()

    def _add(self, passages: Sequence[Passage]) -> list[int]:
        places = self._offered.add(passages)
        if len(places) < len(passages):
            self._flags.append("duplicate_passages")
        return places

    def _offer(self, hypothesis: Hypothesis, places: Sequence[int]) -> list[int | None]:
        used = hypothesis.used() if self._options.skip_used_passages else set[int]()
        left: list[int | None] = [place for place in places if place not in used]
        if not left:
            self._flags.append("passages_used_up" if places else "no_passages")
        return left or [None]

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
        passages = tuple(self._offered[index] for index in task.passages)
        return Generate(self._prefix(task.hypothesis), passages, SegmentLimits(room, is_whole))

    def _prefix(self, hypothesis: Hypothesis) -> Prefix:
        passage = self._offered[hypothesis.last_passage]
        return Prefix(self._asked.instruction, hypothesis.answered, passage)

    def _prune(self, children: Sequence[Child]) -> list[Critique]:
        """Let the children compete with what is done, and return their critiques."""
        finished = [h for h in self._pool if h.done]
        if "deepest_level" in self._options.compat:
            finished = []
        self._pool = [child.hypothesis for child in kept(finished, children, self._options)]
        critiques = [child.critique for child in children if child.critique is not None]
        self._critiques += critiques
        return critiques
