"""The poster's variant of Self-CRAG: passage by passage, until an answer is good enough.

The CRAG poster sketches it as pseudocode. It is illustrative: no numbers were published for it, and
it is not the method of the paper, in which Self-RAG reads the corrected knowledge. To reproduce the
paper use the short or the long form.

grade   the model says of its answer   use
------- ------------------------------ ------------------------------------------------------
high    relevant, fully or partially   full: the answer from the passage
        supported
medium  relevant                       mixed: a draft from the model's own knowledge, continued
                                       with the passage
low     (it is not asked)              none

Anything else is skipped. An answer ends the search if it is factual, that is fully supported (of a
mixed one the continuation, since only that is judged against a passage), and complete, that is of
utility 4 or 5. If none is, the best score of all that were used wins.
"""

import time
from collections.abc import Callable, Sequence

from crag.errors import ModelError
from crag.reflection.backend import Candidate, Passage, SegmentLimits
from crag.reflection.cleaning import short_answer
from crag.reflection.critiques import Offered, critique_of
from crag.reflection.deciding import Verdict, needs_decision, opening_verdict
from crag.reflection.exchange import Asked, Decide, Generate, Judged, Steps
from crag.reflection.grades import (
    Answer,
    Grade,
    best_of,
    check_grades,
    graded,
    is_good_enough,
    refusal,
    unread,
    use,
)
from crag.reflection.hypotheses import cut
from crag.reflection.options import Options
from crag.reflection.records import Critique, Flag, Outcome
from crag.reflection.scoring import short_form_score
from crag.reflection.tokens import NO_RETRIEVAL, OPEN

__all__ = ["Grade", "poster_form"]

Clock = Callable[[], float]

_OF_THE_ANSWER: frozenset[Flag] = frozenset({"empty", "cut"})


def poster_form(
    asked: Asked,
    grades: Sequence[Grade],
    options: Options,
    clock: Clock = time.monotonic,
    *,
    own_knowledge: bool = False,
) -> Steps[Outcome]:
    """Answer from the passages one after the other, by their `grades`; `clock` gives seconds.

    Each passage has one critique that tells its fate, and is generated with at most once; a
    repeated one has the grade it had first. The draft is generated once, for the first passage of
    medium grade. It is the whole answer only where the decision is not to retrieve, or, with
    `own_knowledge`, where no passage was of use; otherwise the answer is empty there.

    Time and tokens are bounded. A `ModelError` after the first passage of use ends the search with
    what there is. Hard constraints skip; answers to closed tasks are not summed.

    Raises:
        ValueError: there are no passages to grade (None), not as many grades, or an unknown one.
    """
    check_grades(asked.passages, grades)
    return _answered(asked, grades, _Reading(asked, options, clock), own_knowledge=own_knowledge)


def _answered(
    asked: Asked, grades: Sequence[Grade], reading: "_Reading", *, own_knowledge: bool
) -> Steps[Outcome]:
    verdict = yield from reading.verdict()
    yield [Judged((verdict.choice(0, 0),), ())]
    if verdict.action == "no_retrieve":
        yield from reading.answer_alone(verdict.why)
    else:
        yield from reading.read(asked.passages or (), grades)
        if own_knowledge and not reading.answers:
            yield from reading.answer_alone("no passage was of use")
    return reading.outcome(verdict)


class _Reading:
    """What was generated so far, and what became of it."""

    def __init__(self, asked: Asked, options: Options, clock: Clock) -> None:
        self._asked, self._options, self._clock = asked, options, clock
        self._latest = clock() + options.max_reflection_seconds
        self._offered = Offered()
        self._draft: Critique | None = None
        self._critiques: list[Critique] = []
        self._flags: list[Flag] = []
        self._tokens, self._begun = 0, False
        self._ended = ""
        """Why no more passages are read."""
        self._final: Answer | None = None
        self.answers: list[Answer] = []
        """From the passages that were of use."""

    def verdict(self) -> Steps[Verdict]:
        """Decide whether to read at all, unless that was decided before."""
        decided = self._asked.decided
        asks = decided is None and needs_decision(self._options)
        decision = (yield [Decide(self._asked.prefix())])[0] if asks else None
        return opening_verdict(decided, decision, self._options, short=True)

    def read(self, passages: Sequence[Passage], grades: Sequence[Grade]) -> Steps[None]:
        """Go through the passages, and choose among the answers."""
        places = graded(passages, grades, self._offered)
        if len(places) < len(passages):
            self._flags.append("duplicate_passages")
        if not passages:
            self._flags.append("no_passages")
        for place, grade in places.items():
            yield self._judged((yield from self._fate(place, grade)))
        if self.answers and self._final is None:
            self._final = best_of(self.answers)

    def answer_alone(self, why: str) -> Steps[None]:
        """Answer with the draft, if there is one."""
        draft = yield from self._drafted()
        if draft is not None:
            draft["why"] = f"the answer without a passage: {why}"
            self._final = Answer((draft,), draft["text"])

    def outcome(self, verdict: Verdict) -> Outcome:
        """Return the answer, empty if there is none."""
        final = self._final or Answer()
        for part in final.parts:
            part["kept"] = part["chosen"] = True
        of_parts = (flag for part in final.parts for flag in part["flags"])
        found: list[Flag] = [flag for flag in of_parts if flag in _OF_THE_ANSWER]
        if not final.parts:
            found.append("empty")
        return Outcome(
            answer=final.text,
            raw=final.raw,
            passages=self._offered.records(),
            cited=[part["passage"] for part in final.parts if part["passage"] is not None],
            score=final.score,
            choices=[verdict.choice(0, 0)],
            critiques=self._critiques,
            flags=list(dict.fromkeys((*self._flags, *found))),
            tokens=self._tokens,
        )

    def _fate(self, place: int, grade: Grade) -> Steps[Critique]:
        made: Critique | None = None
        if grade != "low" and not self._ended:
            try:
                made = yield from self._with_passage(place, grade)
            except ModelError:
                if not self.answers:
                    raise
                self._end("model_failed", "the model failed")
        why = "its grade is low" if grade == "low" else self._ended
        return made or unread(self._offered.numbered(place), why)

    def _with_passage(self, place: int, grade: Grade) -> Steps[Critique | None]:
        """Generate with a passage and judge what came; None: a limit was reached before."""
        draft = (yield from self._drafted()) if grade == "medium" else None
        before = NO_RETRIEVAL + draft["text"] if draft else ""
        candidate = yield from self._generate(before, place)
        if candidate is None:
            return None
        critique = self._critique(candidate, place, candidate.text, segment=1 if draft else 0)
        why = refusal(candidate, grade, self._options)
        critique["why"] = why or use(grade, mixed=draft is not None)
        if not why:
            parts = (draft, critique) if draft else (critique,)
            self._take(Answer(parts, before + candidate.text), ends=is_good_enough(candidate))
        return critique

    def _take(self, answer: Answer, *, ends: bool) -> None:
        """Let an answer compete, or end the search with it."""
        self.answers.append(answer)
        for part in answer.parts:
            part["kept"], part["chosen"] = True, ends
        if ends:
            self._final, self._ended = answer, "an earlier answer is factual and complete"
            for other in self.answers:
                said = "it is" if other is answer else "a later answer is"
                other.parts[-1]["why"] += f"; {said} factual and complete"

    def _drafted(self) -> Steps[Critique | None]:
        """Return the draft from own knowledge; None if it is empty or there was no room for it.

        It ends where the model asks for a passage: what follows draws on one that it made up.
        """
        if self._draft is None:
            candidate = yield from self._generate("", None)
            if candidate is None:
                return None
            text, _, _ = cut(candidate, at_retrieval=True)
            self._draft = self._critique(candidate, None, text)
            is_empty = "empty" in self._draft["flags"]
            self._draft["why"] = "it is empty" if is_empty else "a draft from own knowledge"
            yield self._judged(self._draft)
        return None if "empty" in self._draft["flags"] else self._draft

    def _generate(self, before: str, place: int | None) -> Steps[Candidate | None]:
        """Generate one whole answer; None: a limit is reached. The first one is always made."""
        room = self._options.max_reflection_tokens - self._tokens
        if room < 1:
            self._end("token_limit", "all tokens were spent before")
        elif self._begun and self._clock() >= self._latest:
            self._end("time_limit", "the time was over before")
        else:
            self._begun = True
            limits = SegmentLimits(min(room, self._options.max_segment_tokens), whole_answer=True)
            prefix = self._asked.prefix(before)
            candidate: Candidate = (yield [Generate(prefix, (self._offered[place],), limits)])[0][0]
            self._tokens += candidate.tokens
            return candidate
        return None

    def _end(self, flag: Flag, why: str) -> None:
        self._flags.append(flag)
        self._ended = why

    def _critique(
        self, candidate: Candidate, place: int | None, text: str, segment: int = 0
    ) -> Critique:
        scored = short_form_score(candidate, self._options, has_passage=place is not None)
        critique = critique_of(candidate, scored, self._offered.numbered(place), segment=segment)
        critique["text"] = text
        found: dict[Flag, bool] = {
            "empty": not short_answer(text),
            "cut": candidate.ending == "length",
            "invented_passage": OPEN in candidate.text,
        }
        raised: list[Flag] = [flag for flag, is_found in found.items() if is_found]
        critique["flags"] += raised
        return critique

    def _judged(self, critique: Critique) -> Sequence[Judged]:
        self._critiques.append(critique)
        return [Judged((), (critique.copy(),))]
