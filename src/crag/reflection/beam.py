"""Long form: a beam search over segments (Self-RAG, Algorithm 1 and Sec. 3.3).

A round extends every hypothesis that is not done by one segment:

1. decide whether to retrieve, to continue with the last passage, or neither;
2. find the passages of each hypothesis;
3. generate one segment for each passage, those of all hypotheses in one batch;
4. score the segments, each of which makes a longer hypothesis, a child;
5. merge children that say the same, and keep the best, with those that were done before.

At the end the segments of the best hypothesis are joined to an answer with citations. Depth and
time are bounded; a flag of the answer says which bound ended the search early. Between two rounds
the search is a record of plain JSON. A subclass takes some steps as another program does.
"""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Final, NamedTuple

from crag.answering.citations import with_number
from crag.errors import ModelError
from crag.parts import Candidate, Continuation, Decision, Prefix, SegmentLimits
from crag.reflection.cleaning import cleaned
from crag.reflection.driver import Asked, Driver, Offered
from crag.reflection.retrieval_decision import next_choice, opening_choice
from crag.reflection.scoring import CritiqueScores, critique_of, doubt_of, score
from crag.reflection_tokens import NO_RETRIEVAL, OPEN
from crag.state import Beam, Choice, Critique, Ending, Flag, Hypothesis, Reflection

ENDINGS: Final = ("end", "length")
"""How a candidate ends after which its answer cannot go on."""


def long_form(asked: Asked, driver: Driver) -> Reflection:
    """Answer in segments by a whole search."""
    record = beam_round(asked, Reflection(), driver)
    while record["beam"] is not None:
        record = beam_round(asked, record, driver)
    return record


def beam_round(asked: Asked, record: Reflection, driver: Driver) -> Reflection:
    """Return the record after one more round: with a `beam` for the next one, or with the answer.

    Raises:
        ModelError: the back end failed in the first round; a later failure ends the search.
    """
    return (driver.rules.search or BeamSearch)(asked, record, driver).round()


class Extension(NamedTuple):
    """A hypothesis to extend."""

    place: int
    """In the beam."""
    hypothesis: Hypothesis
    passages: tuple[int | None, ...]
    """By index; None for a segment without a passage."""


class Child(NamedTuple):
    """A hypothesis after one more segment, or one that was done before (no critique)."""

    hypothesis: Hypothesis
    critique: Critique | None = None
    undesired: tuple[str, ...] = ()
    """The critiques for which hard constraints drop it."""


class BeamSearch:
    """One round of a search, on a copy of its record."""

    def __init__(self, asked: Asked, record: Reflection, driver: Driver) -> None:
        self._asked, self._driver = asked, driver
        self._settings, self._rules = driver.settings, driver.rules
        beam, is_first = deepcopy(record.get("beam")), record.get("beam") is None
        prepared = None if asked.passages is None else list(asked.passages)
        self._beam = beam or Beam(
            depth=0, pool=[_opening()], static=None, prepared=prepared, flags=[], tokens=0,
            seconds=0.0, ended=None,
        )  # fmt: skip
        self._offered = Offered([] if is_first else record["passages"])
        self._choices: list[Choice] = [] if is_first else list(record["choices"])
        self._critiques: list[Critique] = [] if is_first else deepcopy(record["critiques"])
        self._began = driver.clock() - self._beam["seconds"]

    def round(self) -> Reflection:
        """Extend every hypothesis that is not done, and keep the best."""
        beam, depth = self._beam, self._beam["depth"]
        beam["depth"] = depth + 1
        try:
            self._extend(depth)
        except ModelError:
            if depth == 0:
                raise
            beam["ended"] = "model_failed"
        beam["seconds"] = self._driver.clock() - self._began
        if not self._over and beam["seconds"] >= self._settings.max_reflection_seconds:
            beam["ended"] = "time_limit"
        record = Reflection(
            choices=self._choices, passages=self._offered.records, critiques=self._critiques,
            beam=None if self._over else beam,
        )  # fmt: skip
        return {**record, **self._answer()} if self._over else record

    @property
    def _over(self) -> bool:
        beam = self._beam
        is_done = all(hypothesis["done"] for hypothesis in beam["pool"])
        return beam["ended"] is not None or is_done or beam["depth"] >= self._deepest()

    def _deepest(self) -> int:
        """Return the most segments of an answer."""
        return self._settings.max_depth

    def _extend(self, depth: int) -> None:
        choices = self._decided(depth)
        self._choices += choices.values()
        tasks = self._tasks(choices)
        if not tasks:
            return
        whole = self._is_whole(choices, depth)
        candidates = iter(
            self._driver.candidates(
                [
                    Continuation(self._prefix(task.hypothesis), self._offered[place])
                    for task in tasks
                    for place in task.passages
                ],
                SegmentLimits(self._settings.max_new_tokens, self._generates_whole(is_whole=whole)),
            )
        )
        children = [Child(hypothesis) for hypothesis in self._finished()]
        for task in tasks:
            of_task = [next(candidates) for _ in task.passages]
            self._beam["tokens"] += sum(candidate.tokens for candidate in of_task)
            children += self._children(task, of_task, is_whole=whole)
        self._beam["pool"] = [child.hypothesis for child in self._pruned(children)]

    def _finished(self) -> list[Hypothesis]:
        """Return the hypotheses that compete with longer ones although they are done."""
        return [hypothesis for hypothesis in self._beam["pool"] if hypothesis["done"]]

    def _decided(self, depth: int) -> dict[int, Choice]:
        """Decide for each place of the beam; a hypothesis that no segment follows is done."""
        if depth == 0:
            opening = opening_choice(self._asked, self._driver, short=False)
            return {0: {**opening, "segment": 0, "hypothesis": 0}}
        live = {at: one for at, one in enumerate(self._beam["pool"]) if not one["done"]}
        asking = [at for at, hypothesis in live.items() if self._asks(hypothesis)]
        prefixes = [self._prefix(live[at]) for at in asking]
        replies = self._driver.decide(prefixes) if prefixes else []
        decisions = dict(zip(asking, replies, strict=True))
        choices: dict[int, Choice] = {}
        for at, hypothesis in live.items():
            choice = self._next_choice(hypothesis, decisions.get(at))
            if choice is None:
                hypothesis["done"] = True
            else:
                choices[at] = {**choice, "segment": depth, "hypothesis": at}
        return choices

    def _asks(self, hypothesis: Hypothesis) -> bool:
        """Return whether the model decides before the next segment of a hypothesis."""
        del hypothesis
        return self._settings.retrieval_mode == "adaptive"

    def _next_choice(self, hypothesis: Hypothesis, decision: Decision | None) -> Choice | None:
        """Decide before a later segment; None if no segment is to follow."""
        can_continue = self._last_passage(hypothesis) is not None
        return next_choice(decision, hypothesis["ending"], self._driver, can_continue=can_continue)

    def _tasks(self, choices: Mapping[int, Choice]) -> list[Extension]:
        """Return each hypothesis with the passages to extend it with."""
        tasks: list[Extension] = []
        for place, choice in choices.items():
            hypothesis = self._beam["pool"][place]
            passages: list[int | None] = [None]
            if choice["action"] == "continue":
                passages = [self._last_passage(hypothesis)]
            elif choice["action"] == "retrieve":
                passages = [*self._retrieved(hypothesis)] or [None]
            tasks.append(Extension(place, hypothesis, tuple(passages)))
        return tasks

    def _retrieved(self, hypothesis: Hypothesis) -> list[int]:
        """Return the passages for a hypothesis: those of every segment, or of a search for it."""
        beam, is_static = self._beam, self._settings.segment_retrieval == "static"
        if is_static or (beam["prepared"] is not None and beam["depth"] == 1):
            static, prepared = beam["static"], beam["prepared"]
            if static is None:
                if prepared is None:
                    prepared = self._driver.search(self._asked.query)
                static = beam["static"] = self._offered.add(prepared, beam["flags"])
                beam["prepared"] = None
            return static
        last = "".join(cleaned(critique["text"]) for critique in self._of(hypothesis)[-1:])
        passages = self._driver.search(f"{self._asked.query} {last}".strip())
        return self._offered.add(passages, beam["flags"])

    def _is_whole(self, choices: Mapping[int, Choice], depth: int) -> bool:
        """Return whether the rest of the answer is generated at once, without retrieval."""
        del choices, depth
        return self._settings.retrieval_mode == "never"

    def _generates_whole(self, *, is_whole: bool) -> bool:
        """Return whether generation goes on beyond the Retrieve token that ends a segment."""
        return is_whole

    def _prefix(self, hypothesis: Hypothesis) -> Prefix:
        passage = self._offered[self._last_passage(hypothesis)]
        return self._asked.prefix(hypothesis["context"], passage)

    def _last_passage(self, hypothesis: Hypothesis) -> int | None:
        critiques = self._of(hypothesis)
        return critiques[-1]["passage"] if critiques else None

    def _of(self, hypothesis: Hypothesis) -> list[Critique]:
        """Return the critiques of a hypothesis' segments."""
        return [self._critiques[place] for place in hypothesis["critiques"]]

    def _children(
        self, task: Extension, candidates: Sequence[Candidate], *, is_whole: bool
    ) -> list[Child]:
        """Extend a hypothesis by each candidate, and record the critiques."""
        parent, children = task.hypothesis, list[Child]()
        for place, candidate in zip(task.passages, candidates, strict=True):
            text, ending = self._cut(candidate, is_whole=is_whole)
            critique = critique_of(
                candidate._replace(ending=ending),
                self._scored(candidate, has_passage=place is not None),
                self._offered.numbered(place),
                text=text,
                segment=len(parent["critiques"]),
                hypothesis=task.place,
            )
            self._critiques.append(critique)
            done = is_whole or self._ends(candidate, ending)
            hypothesis = self._extended(parent, critique, done=done, ending=ending)
            undesired = tuple(self._rules.undesired(candidate, self._settings))
            children.append(Child(hypothesis, critique, undesired))
        return children

    def _cut(self, candidate: Candidate, *, is_whole: bool) -> tuple[str, Ending]:
        """Return text and ending of a segment, without a passage that the model invents."""
        del is_whole
        return candidate.text.partition(OPEN)[0], candidate.ending

    def _scored(self, candidate: Candidate, *, has_passage: bool) -> CritiqueScores:
        return score(candidate, self._settings.weights, has_passage=has_passage)

    def _extended(
        self, parent: Hypothesis, critique: Critique, *, done: bool, ending: Ending
    ) -> Hypothesis:
        """Return the parent with the last segment; one without text ends the parent instead."""
        is_empty = not cleaned(critique["text"])
        if is_empty and parent["critiques"]:
            return {**parent, "done": True, "ending": ending}
        return Hypothesis(
            context=parent["context"] + as_written(critique),
            critiques=[*parent["critiques"], len(self._critiques) - 1],
            done=done or is_empty,
            ending=ending,
        )

    def _ends(self, candidate: Candidate, ending: Ending) -> bool:
        """Return whether an answer ends with this candidate."""
        return candidate.utility is not None or ending in ENDINGS

    def _pruned(self, entries: Sequence[Child]) -> list[Child]:
        """Return the beam, best first, and record in the critiques what became of each child.

        Hard constraints drop children first, unless nothing would be left; of those that say the
        same the best is kept; then the best `beam_width` of all.
        """
        width = self._settings.beam_width
        ranked = self._ranked(_unconstrained(entries))
        for rank, entry in enumerate(ranked, start=1):
            where = "in" if rank <= width else "beyond"
            _conclude(entry, f"place {rank} {where} a beam of {width}", kept=rank <= width)
        return ranked[:width]

    def _ranked(self, entries: Sequence[Child]) -> list[Child]:
        """Merge those that say the same, and return the best first; ties keep their order.

        Of those that say the same the best is kept, of equals the first; one that is done and one
        that is not are never the same. Hypotheses that say nothing come last.
        """
        best: dict[tuple[bool, str], Child] = {}
        for entry in entries:
            key = (entry.hypothesis["done"], self._shown(entry.hypothesis))
            other = best.setdefault(key, entry)
            if self._score(entry.hypothesis) > self._score(other.hypothesis):
                best[key] = entry
        distinct = [entry for entry in entries if any(entry is one for one in best.values())]
        for entry in entries:
            if not any(entry is one for one in distinct) and entry.critique is not None:
                _conclude(entry, "another hypothesis that says the same scored at least as high")
                entry.critique["flags"].append("merged")
        return sorted(
            distinct,
            key=lambda one: (not self._shown(one.hypothesis), -self._score(one.hypothesis)),
        )

    def _score(self, hypothesis: Hypothesis) -> float:
        """Return the mean score of the segments; 0 without any."""
        totals = [critique["total"] for critique in self._of(hypothesis)]
        return math.fsum(totals) / max(1, len(totals))

    def _shown(self, hypothesis: Hypothesis) -> str:
        """Return the text without tokens."""
        return " ".join(filter(None, (cleaned(one["text"]) for one in self._of(hypothesis))))

    def _answer(self) -> Reflection:
        """Return the best hypothesis as an answer."""
        best, ended = self._best(), self._beam["ended"]
        chosen = self._of(best)
        for critique in chosen:
            critique["chosen"] = True
        answer, cited, flags = self._joined(chosen)
        raised: dict[Flag, bool] = {
            "constraint_fallback": any("constraint_fallback" in one["flags"] for one in chosen),
            "depth_limit": ended is None and not best["done"],
            "cut": best["ending"] == "length",
            "empty": not answer,
        }
        last: list[Flag] = [ended] if ended else []
        flags += [*last, *(flag for flag in raised if raised[flag])]
        flags = [*self._beam["flags"], *flags]
        return Reflection(
            answer=answer, raw=best["context"], cited=cited, score=self._score(best),
            flags=sorted(set(flags), key=flags.index),  # pyright: ignore[reportArgumentType]
            tokens=self._beam["tokens"],
        )  # fmt: skip

    def _best(self) -> Hypothesis:
        return self._beam["pool"][0]

    def _joined(self, critiques: Sequence[Critique]) -> tuple[str, list[int], list[Flag]]:
        return joined(critiques)


def as_written(critique: Critique) -> str:
    """Return a segment as it stands in the context of the next one."""
    return (NO_RETRIEVAL if critique["passage"] is None else "") + critique["text"]


def joined(critiques: Sequence[Critique]) -> tuple[str, list[int], list[Flag]]:
    """Join segments to an answer; ``[n]`` in it is the passage ``cited[n - 1]``.

    ``[n]`` is inserted before the full stop of a segment; a passage that is cited again keeps its
    number. A segment that repeats an earlier one is left out. One whose passage was judged
    irrelevant, or that was judged unsupported, cites nothing.
    """
    spoken = [(cleaned(critique["text"]), critique) for critique in critiques]
    spoken = [(shown, critique) for shown, critique in spoken if shown]
    unique: dict[str, Critique] = {}
    for shown, critique in spoken:
        unique.setdefault(shown, critique)
    cited: list[int] = []
    parts: list[str] = []
    for shown, critique in unique.items():
        passage, number = critique["passage"], None
        if passage is not None and not doubt_of(critique):
            if passage not in cited:
                cited.append(passage)
            number = cited.index(passage) + 1
        parts.append(with_number(shown, number))
    flags: list[Flag] = ["repeated_segment"] if len(unique) < len(spoken) else []
    return " ".join(parts), cited, flags


def _opening() -> Hypothesis:
    return Hypothesis(context="", critiques=[], done=False, ending="retrieve")


def _unconstrained(entries: Sequence[Child]) -> list[Child]:
    """Drop those with an undesired critique; all are kept if that leaves none."""
    left = [entry for entry in entries if not entry.undesired]
    for entry in entries:
        if entry.critique is None or not entry.undesired:
            continue
        if left:
            _conclude(entry, f"it says {', '.join(entry.undesired)}")
        else:
            entry.critique["flags"].append("constraint_fallback")
    return left or list(entries)


def _conclude(entry: Child, why: str, *, kept: bool = False) -> None:
    if entry.critique is not None:
        entry.critique["kept"], entry.critique["why"] = kept, why
