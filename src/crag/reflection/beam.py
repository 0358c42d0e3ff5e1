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
from crag.reflection.scoring import CritiqueScores, critique_of, doubt_of, objection, score
from crag.reflection_tokens import NO_RETRIEVAL, OPEN
from crag.state import (
    Beam,
    Choice,
    Critique,
    Ending,
    Flag,
    Hypothesis,
    OfferedPassage,
    Reflection,
)

ENDINGS: Final = ("end", "length")
"""How a candidate ends after which its answer cannot go on."""


def long_form(asked: Asked, driver: Driver) -> Reflection:
    """Answer in segments by a whole search."""
    record = beam_round(asked, driver)
    while record["beam"] is not None:
        record = beam_round(asked._replace(record=record), driver)
    return record


def beam_round(asked: Asked, driver: Driver) -> Reflection:
    """Return the record after one more round: with a `beam` for the next one, or with the answer.

    Raises:
        ModelError: the back end failed in the first round; a later failure ends the search.
    """
    return (driver.rules.search or BeamSearch)(asked, driver).round()


class Child(NamedTuple):
    """A hypothesis after one more segment, or one that was done before (no critique)."""

    hypothesis: Hypothesis
    critique: Critique | None = None
    objection: str = ""
    """The critique for which hard constraints drop it."""

    def conclude(self, why: str, *, kept: bool = False) -> None:
        """Record what became of the segment."""
        if self.critique is not None:
            self.critique["kept"], self.critique["why"] = kept, why


class BeamSearch:
    """One round of a search, on a copy of its record."""

    def __init__(self, asked: Asked, driver: Driver) -> None:
        self._asked, self._driver = asked, driver
        self._settings, self._rules = driver.settings, driver.rules
        record = Reflection(choices=[], passages=[], critiques=[])
        if asked.record.get("beam") is not None:
            record = deepcopy(asked.record)
        self._choices, self._critiques = record["choices"], record["critiques"]
        self._offered = Offered(record["passages"])
        self._beam = record.get("beam") or Beam(
            depth=0, pool=[Hypothesis(context="", critiques=[], done=False, ending="retrieve")],
            prepared=None if asked.passages is None else list(asked.passages), static=None,
            flags=[], tokens=0, seconds=0.0, ended=None,
        )  # fmt: skip
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
        is_over = beam["ended"] is not None or beam["depth"] >= self._deepest()
        is_over = is_over or all(hypothesis["done"] for hypothesis in beam["pool"])
        if not is_over and beam["seconds"] >= self._settings.max_reflection_seconds:
            is_over, beam["ended"] = True, "time_limit"
        record = Reflection(
            choices=self._choices, passages=self._offered.records, critiques=self._critiques,
            beam=None if is_over else beam,
        )  # fmt: skip
        return {**record, **self._answer()} if is_over else record

    def _deepest(self) -> int:
        return self._settings.max_depth

    def _extend(self, depth: int) -> None:
        choices = self._decided(depth)
        self._choices += choices.values()
        if not choices:
            return
        places = {at: self._passages(at, choice) for at, choice in choices.items()}
        whole, pool = self._is_whole(choices, depth), self._beam["pool"]
        asked = [
            Continuation(self._prefix(pool[at]), self._offered[place])
            for at, offered in places.items()
            for place in offered
        ]
        most = self._settings.max_new_tokens
        limits = SegmentLimits(most, self._generates_whole(is_whole=whole))
        candidates = self._driver.candidates(asked, limits)
        self._beam["tokens"] += sum(candidate.tokens for candidate in candidates)
        written = iter(candidates)
        children = [Child(hypothesis) for hypothesis in self._finished()]
        for at, offered in places.items():
            of_parent = [(place, next(written)) for place in offered]
            children += self._children(at, of_parent, is_whole=whole)
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

    def _passages(self, at: int, choice: Choice) -> Sequence[int | None]:
        """Return the passages to extend a hypothesis with; None for a segment without one."""
        hypothesis = self._beam["pool"][at]
        if choice["action"] == "continue":
            return [self._last_passage(hypothesis)]
        return (self._retrieved(hypothesis) if choice["action"] == "retrieve" else []) or [None]

    def _retrieved(self, hypothesis: Hypothesis) -> list[int]:
        """Return the passages for a hypothesis: those of every segment, or of a search for it."""
        beam, prepared = self._beam, self._beam["prepared"]
        if self._settings.segment_retrieval == "dynamic" and (
            prepared is None or beam["depth"] > 1
        ):
            last = "".join(cleaned(critique["text"]) for critique in self._of(hypothesis)[-1:])
            return self._offer(self._driver.search(f"{self._asked.query} {last}".strip()))
        static = beam["static"]
        if static is None:
            if prepared is None:
                prepared = self._driver.search(self._asked.query)
            static = beam["static"] = self._offer(prepared)
            beam["prepared"] = None
        return static

    def _offer(self, passages: Sequence[OfferedPassage]) -> list[int]:
        if not passages:
            self._beam["flags"].append("no_passages")
        return self._offered.add(passages)

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
        self, at: int, candidates: Sequence[tuple[int | None, Candidate]], *, is_whole: bool
    ) -> list[Child]:
        """Extend a hypothesis by each candidate of a passage, and record the critiques."""
        parent, children = self._beam["pool"][at], list[Child]()
        for place, candidate in candidates:
            text, ending = self._cut(candidate, is_whole=is_whole)
            critique = critique_of(
                candidate._replace(ending=ending),
                self._scored(candidate, has_passage=place is not None),
                self._offered.numbered(place),
                text=text,
                segment=len(parent["critiques"]),
                hypothesis=at,
            )
            self._critiques.append(critique)
            done = is_whole or self._ends(candidate, ending)
            hypothesis = self._extended(parent, critique, done=done, ending=ending)
            children.append(Child(hypothesis, critique, objection(candidate, self._settings)))
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

    def _pruned(self, children: Sequence[Child]) -> list[Child]:
        """Return the beam, best first, and record in the critiques what became of each child.

        Hard constraints drop children first, unless nothing would be left; of those that say the
        same the best is kept; then the best `beam_width` of all.
        """
        left = [child for child in children if not child.objection] or list(children)
        for child in children:
            if child.objection and left[0].objection and child.critique is not None:
                child.critique["flags"].append("constraint_fallback")
            elif child.objection:
                child.conclude(f"it says {child.objection}")
        width, ranked = self._settings.beam_width, self._ranked(left)
        for rank, child in enumerate(ranked, start=1):
            where = "in" if rank <= width else "beyond"
            child.conclude(f"place {rank} {where} a beam of {width}", kept=rank <= width)
        return ranked[:width]

    def _ranked(self, children: Sequence[Child]) -> list[Child]:
        """Merge those that say the same, and return the best first; ties keep their order.

        Of those that say the same the best is kept, of equals the first; one that is done and one
        that is not are never the same. Hypotheses that say nothing come last.
        """
        keys = [(child.hypothesis["done"], self._shown(child.hypothesis)) for child in children]
        scores = [self._score(child.hypothesis) for child in children]
        best: dict[tuple[bool, str], int] = {}
        for at, key in enumerate(keys):
            if scores[at] > scores[best.setdefault(key, at)]:
                best[key] = at
        for at, child in enumerate(children):
            if best[keys[at]] != at:
                child.conclude("another hypothesis that says the same scored at least as high")
        order = sorted(sorted(best.values()), key=lambda at: (not keys[at][1], -scores[at]))
        return [children[at] for at in order]

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
        answer, cited, repeated = self._joined(chosen)
        raised: dict[Flag, bool] = {
            "constraint_fallback": any("constraint_fallback" in one["flags"] for one in chosen),
            "depth_limit": ended is None and not best["done"],
            "cut": best["ending"] == "length",
            "empty": not answer,
        }
        flags: list[Flag] = [*self._beam["flags"], *repeated]
        if ended:
            flags.append(ended)
        flags.extend(flag for flag in raised if raised[flag])
        return Reflection(
            answer=answer, raw=best["context"], cited=cited, score=self._score(best),
            flags=list(dict.fromkeys(flags)),
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
    spoken = [(shown, one) for one in critiques if (shown := cleaned(one["text"]))]
    unique = dict(reversed(spoken))
    cited: list[int] = []
    parts: list[str] = []
    for shown in dict.fromkeys(shown for shown, _ in spoken):
        passage, number = unique[shown]["passage"], None
        if passage is not None and not doubt_of(unique[shown]):
            if passage not in cited:
                cited.append(passage)
            number = cited.index(passage) + 1
        parts.append(with_number(shown, number))
    flags: list[Flag] = ["repeated_segment"] if len(unique) < len(spoken) else []
    return " ".join(parts), cited, flags
