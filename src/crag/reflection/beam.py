"""Long form: a beam search over segments (Self-RAG, Algorithm 1 and Sec. 3.3).

A round extends every hypothesis that is not done by one segment:

1. decide whether to retrieve, to continue with the last passage, or neither;
2. find the passages of each hypothesis;
3. generate one segment for each passage, those of all hypotheses in one batch;
4. score the segments, each of which makes a longer hypothesis;
5. merge hypotheses that say the same, and keep the best, with those that were done before.

At the end the segments of the best hypothesis are joined to an answer with citations. Depth is
bounded; a flag of the answer says that it ended the search early. Between two rounds the search is
a record of plain JSON.
"""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Final

from crag.answering.citations import with_number
from crag.errors import ModelError
from crag.parts import Candidate, Continuation, Prefix, SegmentLimits
from crag.reflection.cleaning import cleaned
from crag.reflection.driver import Asked, Driver, Offered
from crag.reflection.retrieval_decision import next_choice, opening_choice
from crag.reflection.scoring import critique_of, objection
from crag.reflection_tokens import NO_RETRIEVAL, OPEN
from crag.state import Beam, Choice, Critique, Flag, Hypothesis, OfferedPassage, Reflection

_ENDINGS: Final = ("end", "length")
"""How a candidate ends after which its answer cannot go on."""


def beam_round(asked: Asked, driver: Driver) -> Reflection:
    """Return the record after one more round: with a `beam` for the next one, or with the answer.

    Raises:
        ModelError: the back end failed in the first round; a later failure ends the search.
    """
    return _Round(asked, driver).run()


class _Round:
    """One round of a search, on a copy of its record."""

    def __init__(self, asked: Asked, driver: Driver) -> None:
        self._asked, self._driver, self._settings = asked, driver, driver.settings
        record = Reflection(choices=[], passages=[], critiques=[])
        if asked.record.get("beam") is not None:
            record = deepcopy(asked.record)
        self._choices, self._critiques = record["choices"], record["critiques"]
        self._offered = Offered(record["passages"])
        self._beam = record.get("beam") or Beam(
            depth=0, pool=[Hypothesis(context="", critiques=[], done=False, ending="retrieve")],
            prepared=None if asked.passages is None else list(asked.passages), flags=[],
        )  # fmt: skip
        self._pool = self._beam["pool"]

    def run(self) -> Reflection:
        """Extend every hypothesis that is not done, and keep the best."""
        beam = self._beam
        ended: list[Flag] = []
        try:
            self._extend(beam["depth"])
        except ModelError:
            if beam["depth"] == 0:
                raise
            ended = ["model_failed"]
        beam["depth"] += 1
        beam["pool"] = self._pool
        is_over = bool(ended) or beam["depth"] >= self._settings.max_depth
        is_over = is_over or all(hypothesis["done"] for hypothesis in self._pool)
        record = Reflection(
            choices=self._choices, passages=self._offered.records, critiques=self._critiques,
            beam=None if is_over else beam,
        )  # fmt: skip
        return record if record["beam"] is not None else {**record, **self._answer(ended)}

    def _extend(self, depth: int) -> None:
        choices = self._decided(depth)
        self._choices += choices.values()
        places = {at: self._passages(at, choice, depth) for at, choice in choices.items()}
        asked = [
            Continuation(self._prefix(self._pool[at]), self._offered[place])
            for at, offered in places.items()
            for place in offered
        ]
        whole, most = self._settings.retrieval_mode == "never", self._settings.max_new_tokens
        written = iter(self._driver.candidates(asked, SegmentLimits(most, whole_answer=whole)))
        done = [hypothesis for hypothesis in self._pool if hypothesis["done"]]
        longer = [
            self._extended(at, place, next(written), depth, is_last=whole)
            for at, offered in places.items()
            for place in offered
        ]
        self._pool = self._pruned([*((one, None) for one in done), *longer])

    def _decided(self, depth: int) -> dict[int, Choice]:
        """Decide for each place of the beam that goes on."""
        if depth == 0:
            return {0: opening_choice(self._asked, self._driver)}
        live = {at: one for at, one in enumerate(self._pool) if not one["done"]}
        asks = self._settings.retrieval_mode == "adaptive"
        replies = self._driver.decide([self._prefix(one) for one in live.values()]) if asks else []
        decisions = dict(zip(live, replies, strict=False))
        choices: dict[int, Choice] = {}
        for at, one in live.items():
            can_continue = self._last_passage(one) is not None
            choice = next_choice(
                decisions.get(at), one["ending"], self._settings, can_continue=can_continue
            )
            choices[at] = {**choice, "segment": depth, "hypothesis": at}
        return choices

    def _passages(self, at: int, choice: Choice, depth: int) -> Sequence[int | None]:
        """Return the passages to extend a hypothesis with; None for a segment without one.

        They are those of every segment, or of a search for this one.
        """
        hypothesis, prepared = self._pool[at], self._beam["prepared"]
        if choice["action"] == "continue":
            return [self._last_passage(hypothesis)]
        if choice["action"] == "no_retrieve":
            return [None]
        found: Sequence[OfferedPassage]
        if self._settings.segment_retrieval == "dynamic" and (prepared is None or depth):
            last = "".join(cleaned(critique["text"]) for critique in self._of(hypothesis)[-1:])
            found = self._driver.search(f"{self._asked.query} {last}".strip())
        elif prepared is None:
            found = self._beam["prepared"] = self._driver.search(self._asked.query)
        else:
            found = prepared
        if not found:
            self._beam["flags"].append("no_passages")
        return self._offered.add(found) or [None]

    def _prefix(self, hypothesis: Hypothesis) -> Prefix:
        passage = self._offered[self._last_passage(hypothesis)]
        return self._asked.prefix(hypothesis["context"], passage)

    def _last_passage(self, hypothesis: Hypothesis) -> int | None:
        critiques = self._of(hypothesis)
        return critiques[-1]["passage"] if critiques else None

    def _of(self, hypothesis: Hypothesis) -> list[Critique]:
        """Return the critiques of a hypothesis' segments."""
        return [self._critiques[place] for place in hypothesis["critiques"]]

    def _extended(
        self, at: int, place: int | None, candidate: Candidate, depth: int, *, is_last: bool
    ) -> tuple[Hypothesis, Critique]:
        """Return a hypothesis with one more segment; one without text ends it instead."""
        parent = self._pool[at]
        text = candidate.text.partition(OPEN)[0]  # The rest is a passage that the model invents.
        critique = critique_of(
            candidate, place, self._settings, text=text, segment=depth, hypothesis=at
        )
        self._critiques.append(critique)
        is_empty = not cleaned(text)
        if is_empty and parent["critiques"]:
            return {**parent, "done": True, "ending": candidate.ending}, critique
        ends = candidate.utility is not None or candidate.ending in _ENDINGS
        return Hypothesis(
            context=parent["context"] + (NO_RETRIEVAL if place is None else "") + text,
            critiques=[*parent["critiques"], len(self._critiques) - 1],
            done=is_last or ends or is_empty,
            ending=candidate.ending,
        ), critique

    def _pruned(self, children: Sequence[tuple[Hypothesis, Critique | None]]) -> list[Hypothesis]:
        """Return the beam, best first, and record in the critiques what became of each child.

        Hard constraints drop children first, unless nothing would be left. Of those that say the
        same the best is kept, of equals the first; one that is done and one that is not are never
        the same. Then the best `beam_width` are kept; those that say nothing come last.
        """
        width = self._settings.beam_width
        refused = [objection(one, self._settings) if one else "" for _, one in children]
        scores = [self._score(hypothesis) for hypothesis, _ in children]
        texts = [self._shown(hypothesis) for hypothesis, _ in children]
        best: dict[tuple[bool, str], int] = {}
        for at, (hypothesis, critique) in enumerate(children):
            if all(refused) and critique:
                critique["flags"].append("constraint_fallback")
            elif refused[at] and critique:
                critique["why"] = f"it says {refused[at]}"
                continue
            key = hypothesis["done"], texts[at]
            if scores[at] > scores[best.setdefault(key, at)]:
                best[key] = at
            if critique:
                critique["why"] = "another hypothesis that says the same scored at least as high"
        ranked = sorted(best.values(), key=lambda at: (not texts[at], -scores[at], at))
        for rank, at in enumerate(ranked, start=1):
            if critique := children[at][1]:
                critique["kept"] = rank <= width
                where = "in" if rank <= width else "beyond"
                critique["why"] = f"place {rank} {where} a beam of {width}"
        return [children[at][0] for at in ranked[:width]]

    def _score(self, hypothesis: Hypothesis) -> float:
        """Return the mean score of the segments; 0 without any."""
        totals = [critique["total"] for critique in self._of(hypothesis)]
        return math.fsum(totals) / max(1, len(totals))

    def _shown(self, hypothesis: Hypothesis) -> str:
        """Return the text without tokens."""
        return " ".join(filter(None, (cleaned(one["text"]) for one in self._of(hypothesis))))

    def _answer(self, ended: Sequence[Flag]) -> Reflection:
        """Return the best hypothesis as an answer."""
        best = self._pool[0]
        chosen = self._of(best)
        for critique in chosen:
            critique["chosen"] = True
        answer, cited, repeated = joined(chosen)
        raised: Mapping[Flag, bool] = {
            "constraint_fallback": any("constraint_fallback" in one["flags"] for one in chosen),
            "depth_limit": not ended and not best["done"],
            "cut": best["ending"] == "length",
            "empty": not answer,
        }
        flags: list[Flag] = [*self._beam["flags"], *repeated, *ended]
        flags.extend(flag for flag in raised if raised[flag])
        return Reflection(
            answer=answer, raw=best["context"], cited=cited, score=self._score(best),
            flags=list(dict.fromkeys(flags)),
        )  # fmt: skip


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
        if passage is not None and not unique[shown]["doubts"]:
            if passage not in cited:
                cited.append(passage)
            number = cited.index(passage) + 1
        parts.append(with_number(shown, number))
    flags: list[Flag] = ["repeated_segment"] if len(unique) < len(spoken) else []
    return " ".join(parts), cited, flags
