"""Long form: a beam search over segments (Self-RAG, Algorithm 1 and Sec. 3.3).

A round extends every hypothesis that is not done by one segment:

1. decide whether to retrieve, to continue with the last passage, or neither;
2. find the passages of each hypothesis;
3. generate one segment for each passage, those of all hypotheses in one batch;
4. score the segments, each of which makes a longer hypothesis, a child;
5. merge children that say the same, and keep the best, with those that were done before.

At the end the segments of the best hypothesis are assembled to an answer with citations. Time,
tokens and depth are bounded; a flag of the outcome says which bound ended the search early. Between
two rounds the search can be stored as plain JSON.

A subclass takes some steps as the released program does: see `crag.reflection.rules`.
"""

import math
import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Self, cast

from crag.answering.citations import with_number
from crag.errors import ModelError
from crag.parts import Candidate, Decision, Passage, Prefix, SegmentLimits
from crag.reflection.cleaning import cleaned
from crag.reflection.driver import (
    AskCandidates,
    AskDecision,
    Asked,
    AskPassages,
    Clock,
    Judged,
    Offered,
    ReflectionOutcome,
    Steps,
)
from crag.reflection.retrieval_decision import Verdict, next_verdict, opening_verdict
from crag.reflection.scoring import CritiqueScores, argmax, critique_of, score, undesired_tokens
from crag.reflection_settings import Accumulation, ReflectionSettings
from crag.reflection_tokens import IRRELEVANT, NO_RETRIEVAL, NO_SUPPORT, OPEN
from crag.state import (
    Choice,
    Critique,
    Ending,
    Flag,
    HypothesisRecord,
    PassageRecord,
    SearchRecord,
    SegmentRecord,
)

ENDINGS: Final = ("end", "length")
"""How a candidate ends after which its answer cannot go on."""


class Hypothesis(NamedTuple):
    """A beginning of an answer."""

    before: str = ""
    """The context of the last segment."""
    segments: tuple[SegmentRecord, ...] = ()
    done: bool = False
    ending: Ending = "retrieve"

    @property
    def answered(self) -> str:
        """All segments as the model wrote them: the context of the next one."""
        if not self.segments:
            return self.before
        last = self.segments[-1]
        return self.before + (NO_RETRIEVAL if last["passage"] is None else "") + last["text"]

    @property
    def shown(self) -> str:
        """The text without tokens."""
        return " ".join(segment["shown"] for segment in self.segments if segment["shown"])

    @property
    def last_passage(self) -> int | None:
        """The passage of the last segment."""
        return self.segments[-1]["passage"] if self.segments else None

    def score(self, accumulation: Accumulation) -> float:
        """Return the scores of the segments as one number; 0 without any."""
        scores = [segment["score"] for segment in self.segments]
        match accumulation:
            case "sum":
                return math.fsum(scores)
            case "mean":
                return math.fsum(scores) / max(1, len(scores))
            case "product":
                return math.prod(scores) if scores else 0.0


class KeptSearch(NamedTuple):
    """A search between two rounds, as plain JSON."""

    record: SearchRecord
    choices: Sequence[Choice]
    critiques: Sequence[Critique]
    passages: Sequence[PassageRecord]
    """In the order in which the records count them."""


class Extension(NamedTuple):
    """A hypothesis to extend."""

    place: int
    """In the beam."""
    hypothesis: Hypothesis
    passages: tuple[int | None, ...]
    """By index; None for a segment without a passage."""
    is_whole: bool
    """Generate the rest of the answer at once, without retrieval."""


class Child(NamedTuple):
    """A hypothesis after one more segment, or one that was done before (no critique)."""

    hypothesis: Hypothesis
    critique: Critique | None = None
    dropped: tuple[str, ...] = ()
    """The undesired tokens among its critiques."""


class BeamSearch:
    """The beam, and the record of all choices and critiques."""

    def __init__(
        self, asked: Asked, settings: ReflectionSettings, clock: Clock = time.monotonic
    ) -> None:
        self._asked, self._settings, self._clock = asked, settings, clock
        self._began = clock()
        self._depth = 0
        self._pool = [Hypothesis()]
        self._offered = Offered()
        self._static: list[int] | None = None
        """Indices of the passages that serve for every segment; None: not retrieved yet."""
        self._choices: list[Choice] = []
        self._critiques: list[Critique] = []
        self._flags: list[Flag] = []
        self._tokens = 0
        self._ended: Flag | None = None

    @classmethod
    def resumed(
        cls,
        asked: Asked,
        settings: ReflectionSettings,
        kept: KeptSearch,
        clock: Clock = time.monotonic,
    ) -> Self:
        """Return the search that `kept` describes; its passages replace those of `asked`."""
        search, record = cls(asked, settings, clock), kept.record
        search._began -= record["seconds"]
        search._depth = record["depth"]
        search._pool = [
            Hypothesis(one["before"], tuple(one["segments"]), one["done"], one["ending"])
            for one in record["pool"]
        ]
        search._offered.add([Passage(entry["title"], entry["text"]) for entry in kept.passages])
        search._static = record["static"]
        search._choices, search._critiques = list(kept.choices), [*map(_copied, kept.critiques)]
        search._flags, search._tokens = list(record["flags"]), record["tokens"]
        search._ended = record["ended"]
        return search

    def keep(self) -> KeptSearch:
        """Return the search as plain JSON, which later rounds do not change."""
        pool = [
            HypothesisRecord(
                before=one.before, segments=list(one.segments), done=one.done, ending=one.ending
            )
            for one in self._pool
        ]
        record = SearchRecord(
            depth=self._depth, pool=pool, static=self._static, flags=list(self._flags),
            tokens=self._tokens, seconds=self._clock() - self._began, ended=self._ended,
            over=self.over,
        )  # fmt: skip
        critiques = [_copied(critique) for critique in self._critiques]
        return KeptSearch(record, list(self._choices), critiques, self._offered.records())

    @property
    def over(self) -> bool:
        """Whether no round follows; there is always a first one."""
        if self._depth == 0:
            return False
        done = all(hypothesis.done for hypothesis in self._pool)
        return self._ended is not None or done or self._depth >= self._deepest()

    def _deepest(self) -> int:
        """Return the most segments of an answer."""
        return self._settings.max_depth

    def round(self) -> Steps[None]:
        """Extend every hypothesis that is not done, and keep the best.

        A `ModelError` is raised in the first round, and ends the search in a later one.
        """
        depth, self._depth = self._depth, self._depth + 1
        try:
            yield from self._extend(depth)
        except ModelError:
            if depth == 0:
                raise
            self._ended = "model_failed"
        if not self.over and self._clock() - self._began >= self._settings.max_reflection_seconds:
            self._ended = "time_limit"

    def _extend(self, depth: int) -> Steps[None]:
        verdicts = yield from self._verdicts(depth)
        tasks = yield from self._tasks(verdicts, depth)
        room = self._room(tasks)
        if not tasks or room < 1:
            self._ended = "token_limit" if tasks else None
            return
        answers: list[list[Candidate]] = yield [self._request(task, room) for task in tasks]
        known, children = len(self._critiques), list[Child]()
        for task, candidates in zip(tasks, answers, strict=True):
            self._tokens += sum(candidate.tokens for candidate in candidates)
            children += self._children(task, candidates)
        done = [Child(hypothesis) for hypothesis in self._finished()]
        self._pool = [child.hypothesis for child in self._pruned([*done, *children])]
        yield [Judged((), tuple(map(_copied, self._critiques[known:])))]

    def _finished(self) -> list[Hypothesis]:
        """Return the hypotheses that compete with longer ones although they are done."""
        return [hypothesis for hypothesis in self._pool if hypothesis.done]

    def _verdicts(self, depth: int) -> Steps[dict[int, Verdict]]:
        """Decide for each place of the beam, and record the choices."""
        if depth == 0:
            opening = yield from opening_verdict(self._asked, self._settings, short=False)
            verdicts = {0: opening}
        else:
            verdicts = yield from self._next_verdicts()
        choices = [verdict.choice(depth, place) for place, verdict in verdicts.items()]
        self._choices += choices
        yield [Judged(tuple(choices), ())]
        return verdicts

    def _next_verdicts(self) -> Steps[dict[int, Verdict]]:
        """Decide before a later segment; a hypothesis that no segment follows is done."""
        live = {place: h for place, h in enumerate(self._pool) if not h.done}
        asking = [place for place, hypothesis in live.items() if self._asks(hypothesis)]
        decisions: dict[int, Decision] = {}
        if asking:
            replies = yield [AskDecision(self._prefix(live[place])) for place in asking]
            decisions = dict(zip(asking, replies, strict=True))
        verdicts: dict[int, Verdict] = {}
        for place, hypothesis in live.items():
            verdict = self._next_verdict(hypothesis, decisions.get(place))
            if verdict is None:
                self._pool[place] = hypothesis._replace(done=True)
            else:
                verdicts[place] = verdict
        return verdicts

    def _asks(self, hypothesis: Hypothesis) -> bool:  # noqa: ARG002 - the released search uses it
        """Return whether the model decides before the next segment of a hypothesis."""
        return self._settings.retrieval_mode == "adaptive"

    def _next_verdict(self, hypothesis: Hypothesis, decision: Decision | None) -> Verdict | None:
        """Decide before a later segment; None if no segment is to follow."""
        can_continue = hypothesis.last_passage is not None
        return next_verdict(decision, hypothesis.ending, self._settings, can_continue=can_continue)

    def _tasks(self, verdicts: dict[int, Verdict], depth: int) -> Steps[list[Extension]]:
        """Return each hypothesis with the passages to extend it with."""
        retrieving = [place for place, verdict in verdicts.items() if verdict.action == "retrieve"]
        by_place: dict[int, list[int]] = {}
        if retrieving:
            by_place = yield from self._retrieved(retrieving, is_first=depth == 0)
        tasks: list[Extension] = []
        for place, verdict in verdicts.items():
            hypothesis = self._pool[place]
            passages: list[int | None] = [None]
            if verdict.action == "continue":
                passages = [hypothesis.last_passage]
            elif verdict.action == "retrieve":
                passages = self._unused(hypothesis, by_place[place])
            tasks.append(
                Extension(place, hypothesis, tuple(passages), self._is_whole(verdict, depth))
            )
        return tasks

    def _retrieved(self, places: Sequence[int], *, is_first: bool) -> Steps[dict[int, list[int]]]:
        """Return the passages for each place: the same for every segment, or a search for each."""
        prepared, is_static = self._asked.passages, self._settings.segment_retrieval == "static"
        if is_static or (prepared is not None and is_first):
            if self._static is None:
                if prepared is None:
                    prepared = (yield [AskPassages(self._asked.query)])[0]
                self._static = self._add(prepared or ())
            return dict.fromkeys(places, self._static)
        retrieved = yield [AskPassages(self._query(self._pool[place])) for place in places]
        return {
            place: self._add(passages) for place, passages in zip(places, retrieved, strict=True)
        }

    def _query(self, hypothesis: Hypothesis) -> str:
        last = hypothesis.segments[-1]["shown"] if hypothesis.segments else ""
        return f"{self._asked.query} {last}".strip()

    def _add(self, passages: Sequence[Passage]) -> list[int]:
        places = self._offered.add(passages)
        if len(places) < len(passages):
            self._flags.append("duplicate_passages")
        return places

    def _unused(self, hypothesis: Hypothesis, places: Sequence[int]) -> list[int | None]:
        """Return the passages to offer to a hypothesis, or one None if there are none."""
        skip = self._settings.skip_used_passages
        used = {segment["passage"] for segment in hypothesis.segments} if skip else set[int]()
        left: list[int | None] = [place for place in places if place not in used]
        if not left:
            self._flags.append("passages_used_up" if places else "no_passages")
        return left or [None]

    def _is_whole(self, verdict: Verdict, depth: int) -> bool:
        """Return whether the whole answer is generated at once."""
        del verdict, depth  # The released search uses them.
        return self._settings.retrieval_mode == "never"

    def _room(self, tasks: Sequence[Extension]) -> int:
        """Return the limit of tokens for each segment of this round."""
        count = sum(len(task.passages) for task in tasks)
        left = (self._settings.max_reflection_tokens - self._tokens) // max(1, count)
        return min(self._settings.max_segment_tokens, left)

    def _request(self, task: Extension, room: int) -> AskCandidates:
        passages = tuple(self._offered[index] for index in task.passages)
        limits = SegmentLimits(room, task.is_whole)
        return AskCandidates(self._prefix(task.hypothesis), passages, limits)

    def _prefix(self, hypothesis: Hypothesis) -> Prefix:
        passage = self._offered[hypothesis.last_passage]
        return self._asked.prefix(hypothesis.answered, passage)

    def _children(self, task: Extension, candidates: Sequence[Candidate]) -> list[Child]:
        """Extend a hypothesis by each candidate, and record the critiques."""
        parent, children = task.hypothesis, list[Child]()
        for passage, candidate in zip(task.passages, candidates, strict=True):
            text, ending, invented = self._cut(candidate, is_whole=task.is_whole)
            scored = self._scored(candidate, has_passage=passage is not None)
            segment = SegmentRecord(
                text=text,
                shown=cleaned(text),
                passage=passage,
                score=scored.total,
                critique=len(self._critiques),
                is_irrelevant=argmax("relevance", candidate.relevance) == IRRELEVANT,
                is_unsupported=argmax("support", candidate.support) == NO_SUPPORT,
            )
            done = task.is_whole or self._ends(candidate, ending)
            hypothesis = self._extended(parent, segment, done=done, ending=ending)
            critique = critique_of(
                candidate._replace(text=text),
                scored,
                self._offered.numbered(passage),
                segment=len(parent.segments),
                hypothesis=task.place,
            )
            raised: dict[Flag, bool] = {
                "empty": not segment["shown"],
                "cut": ending == "length",
                "invented_passage": invented,
            }
            critique["flags"].extend(flag for flag, is_found in raised.items() if is_found)
            self._critiques.append(critique)
            dropped = tuple(undesired_tokens(candidate, self._settings))
            children.append(Child(hypothesis, critique, dropped))
        return children

    def _cut(self, candidate: Candidate, *, is_whole: bool) -> tuple[str, Ending, bool]:
        """Return text and ending of a segment, and whether it went on into an invented passage."""
        del is_whole  # The released search uses it.
        text, invented, _ = candidate.text.partition(OPEN)
        return text, candidate.ending, bool(invented)

    def _scored(self, candidate: Candidate, *, has_passage: bool) -> CritiqueScores:
        return score(candidate, self._settings, has_passage=has_passage)

    def _extended(
        self, parent: Hypothesis, segment: SegmentRecord, *, done: bool, ending: Ending
    ) -> Hypothesis:
        """Return the parent with one more segment; a segment without text ends it instead."""
        if not segment["shown"] and parent.segments:
            return parent._replace(done=True, ending=ending)
        done = done or not segment["shown"]
        return Hypothesis(parent.answered, (*parent.segments, segment), done, ending)

    def _ends(self, candidate: Candidate, ending: Ending) -> bool:
        """Return whether an answer ends with this candidate."""
        return candidate.utility is not None or ending in ENDINGS

    def _pruned(self, entries: Sequence[Child]) -> list[Child]:
        """Return the beam, best first, and record in the critiques what became of each child.

        Hard constraints drop children first, unless nothing would be left; of those that say the
        same the best is kept; then the best `beam_width` of all.
        """
        width = self._settings.beam_width
        if self._settings.constraints == "hard":
            entries = _unconstrained(entries)
        ranked = self._ranked(entries)
        for rank, entry in enumerate(ranked, start=1):
            where = "in" if rank <= width else "beyond"
            _conclude(entry, f"place {rank} {where} a beam of {width}", kept=rank <= width)
        return ranked[:width]

    def _ranked(self, entries: Sequence[Child]) -> list[Child]:
        """Merge those that say the same, and return the best first; ties keep their order.

        Hypotheses that say nothing come last.
        """
        accumulation = self._settings.accumulation
        different = _distinct([entry.hypothesis for entry in entries], accumulation)
        for place, entry in enumerate(entries):
            if place not in different:
                _conclude(entry, "another hypothesis that says the same scored at least as high")
                if entry.critique is not None:
                    entry.critique["flags"].append("merged")
        return sorted(
            (entries[place] for place in different),
            key=lambda entry: (not entry.hypothesis.shown, -entry.hypothesis.score(accumulation)),
        )

    def outcome(self) -> ReflectionOutcome:
        """Return the best hypothesis as an answer."""
        best = self._best()
        chosen = [self._critiques[segment["critique"]] for segment in best.segments]
        for critique in chosen:
            critique["chosen"] = True
        assembled = self._assembled(best.segments)
        raised_now: dict[Flag, bool] = {
            "constraint_fallback": any("constraint_fallback" in c["flags"] for c in chosen),
            "depth_limit": self._ended is None and not best.done,
            "cut": best.ending == "length",
            "empty": not assembled.answer,
        }
        last: list[Flag] = [self._ended] if self._ended else []
        raised: list[Flag] = [flag for flag, is_raised in raised_now.items() if is_raised]
        flags = dict.fromkeys((*self._flags, *assembled.flags, *last, *raised))
        return ReflectionOutcome(
            answer=assembled.answer, raw=best.answered, passages=self._offered.records(),
            cited=assembled.cited, score=best.score(self._settings.accumulation),
            choices=self._choices, critiques=self._critiques, flags=list(flags),
            tokens=self._tokens,
        )  # fmt: skip

    def _best(self) -> Hypothesis:
        return self._pool[0]

    def _assembled(self, segments: Sequence[SegmentRecord]) -> "Assembled":
        return assemble(segments, ignore_no_support=self._settings.ignore_no_support)


def _copied(critique: Critique) -> Critique:
    """Return a copy, since the search changes its critiques in later rounds."""
    return cast("Critique", {**critique, "flags": list(critique["flags"])})


def _unconstrained(entries: Sequence[Child]) -> list[Child]:
    """Drop those with an undesired critique; all are kept if that leaves none."""
    left = [entry for entry in entries if not entry.dropped]
    for entry in entries:
        if entry.critique is None or not entry.dropped:
            continue
        if left:
            _conclude(entry, f"it says {', '.join(entry.dropped)}")
        else:
            entry.critique["flags"].append("constraint_fallback")
    return left or list(entries)


def _distinct(pool: Sequence[Hypothesis], accumulation: Accumulation) -> list[int]:
    """Return the places to keep: of all that say the same the best, of equals the first.

    One that is done and one that is not are never the same.
    """
    best: dict[tuple[bool, str], int] = {}
    for place, hypothesis in enumerate(pool):
        key = (hypothesis.done, hypothesis.shown)
        other = best.setdefault(key, place)
        if hypothesis.score(accumulation) > pool[other].score(accumulation):
            best[key] = place
    return sorted(best.values())


def _conclude(entry: Child, why: str, *, kept: bool = False) -> None:
    if entry.critique is not None:
        entry.critique["kept"], entry.critique["why"] = kept, why


class Assembled(NamedTuple):
    """An answer, and the passages that its numbers refer to."""

    answer: str
    cited: list[int]
    """``[n]`` is the passage ``cited[n - 1]``."""
    flags: list[Flag]


def assemble(segments: Sequence[SegmentRecord], *, ignore_no_support: bool) -> Assembled:
    """Join segments to an answer.

    ``[n]`` is inserted before the full stop of a segment; a passage that is cited again keeps its
    number. A segment that repeats an earlier one is left out. One whose passage was judged
    irrelevant, or that was judged unsupported, cites nothing.
    """
    kept = list(segments)
    if ignore_no_support:
        kept = [segment for segment in segments if not segment["is_unsupported"]]
    flags: list[Flag] = ["all_removed"] if segments and not kept else []
    spoken = [segment for segment in kept if segment["shown"]]
    unique: dict[str, SegmentRecord] = {}
    for segment in spoken:
        unique.setdefault(segment["shown"], segment)
    if len(unique) < len(spoken):
        flags.append("repeated_segment")
    cited: list[int] = []
    parts = [with_number(shown, _number(segment, cited)) for shown, segment in unique.items()]
    return Assembled(" ".join(parts), cited, flags)


def _number(segment: SegmentRecord, cited: list[int]) -> int | None:
    """Return the number of the segment's passage in `cited`, to which a new one is added."""
    passage = segment["passage"]
    if passage is None or segment["is_irrelevant"] or segment["is_unsupported"]:
        return None
    if passage not in cited:
        cited.append(passage)
    return cited.index(passage) + 1
