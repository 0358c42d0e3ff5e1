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
utility 4 or 5. If none is, the best score of all that were used wins; with the fallback
"best_effort" the model answers afresh instead, from its own knowledge, as on the poster.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from crag.errors import ModelError
from crag.parts import Candidate, Passage, SegmentLimits
from crag.reflection.cleaning import cleaned, short_answer
from crag.reflection.driver import (
    AskCandidates,
    Asked,
    Clock,
    Judged,
    Offered,
    ReflectionOutcome,
    Steps,
)
from crag.reflection.retrieval_decision import Verdict, opening_verdict
from crag.reflection.rules import WITHOUT_PASSAGE, rules_of
from crag.reflection.scoring import CritiqueScores, argmax, critique_of, undesired_tokens
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import (
    FULLY,
    NO_RETRIEVAL,
    OPEN,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)
from crag.state import Critique, Flag

GradeLevel = Literal["high", "medium", "low"]
"""How well a passage serves, judged before the model reads it."""

_NOTHING = Candidate("", None, None, None, 0.0, 0, "end")
_UNSCORED = CritiqueScores(None, None, 0.0, 0.0, 0.0, ("not_generated",))
_OF_THE_ANSWER: frozenset[Flag] = frozenset({"empty", "cut"})


class GradedAnswer(NamedTuple):
    """A text that may become the answer."""

    parts: tuple[Critique, ...] = ()
    """The draft, if it is used, and what was generated with the passage."""
    raw: str = ""
    """With tokens."""

    @property
    def score(self) -> float:
        """The score of the part with the passage; 0 for no answer."""
        return self.parts[-1]["total"] if self.parts else 0.0

    @property
    def text(self) -> str:
        """Without tokens."""
        return short_answer(" ".join(cleaned(part["text"]) for part in self.parts))


def graded_loop(
    asked: Asked,
    grades: Sequence[GradeLevel],
    settings: ReflectionSettings,
    clock: Clock = time.monotonic,
    *,
    own_knowledge: bool = False,
) -> Steps[ReflectionOutcome]:
    """Answer from one passage after the other, by their `grades`; `clock` returns seconds.

    Each passage is used for at most one candidate and has one critique that says what became of
    it; a repeated passage has its first grade. The draft is generated once, for the first passage
    of medium grade. It is the whole answer only if the decision is not to retrieve; with
    `own_knowledge` if no passage was of use; with the fallback "best_effort" if no answer is good
    enough. Otherwise the answer is empty if no passage was of use. With "best_effort" an empty
    draft gives way to the best answer, or to the best text that was skipped.

    Time and tokens are bounded. A `ModelError` after the first passage of use ends the loop with
    the best answer so far. Hard constraints skip; answers to closed tasks are not summed.

    Raises:
        ValueError: there are no passages (None), not as many grades, or an unknown one.
    """
    check_grades(asked.passages, grades)

    def steps() -> Steps[ReflectionOutcome]:
        loop = _Loop(asked, settings, clock)
        verdict = yield from opening_verdict(asked, settings, short=True)
        yield [Judged((verdict.choice(0, 0),), ())]
        if verdict.action == "no_retrieve":
            yield from loop.answer_alone(verdict.why)
        else:
            yield from loop.read(asked.passages or (), grades)
            best_effort = settings.poster_fallback == "best_effort"
            if loop.answers and best_effort:
                yield from loop.answer_afresh()
            elif not loop.answers and (own_knowledge or best_effort):
                yield from loop.answer_alone("no passage was of use")
            loop.take_best(or_skipped=best_effort)
        return loop.outcome(verdict)

    return steps()


class _Loop:
    """The candidates so far, and what became of them."""

    def __init__(self, asked: Asked, settings: ReflectionSettings, clock: Clock) -> None:
        self._asked, self._settings, self._clock = asked, settings, clock
        self._latest = clock() + settings.max_reflection_seconds
        self._offered = Offered()
        self._draft: Critique | None = None
        self._critiques: list[Critique] = []
        self._flags: list[Flag] = []
        self._tokens, self._begun = 0, False
        self._ended = ""
        """Why no more passages are read."""
        self._final: GradedAnswer | None = None
        self._skipped: list[GradedAnswer] = []
        """From passages that were refused, where there is a text."""
        self.answers: list[GradedAnswer] = []
        """From the passages that were of use."""

    def read(self, passages: Sequence[Passage], grades: Sequence[GradeLevel]) -> Steps[None]:
        """Go through the passages, until an answer is good enough."""
        places = grades_by_place(passages, grades, self._offered)
        if len(places) < len(passages):
            self._flags.append("duplicate_passages")
        if not passages:
            self._flags.append("no_passages")
        for place, grade in places.items():
            yield self._judged((yield from self._fate(place, grade)))

    def answer_alone(self, why: str) -> Steps[None]:
        """Use the draft as the answer, if there is one."""
        draft = yield from self._drafted()
        if draft is not None:
            draft["why"] = f"{WITHOUT_PASSAGE}{why}"
            self._final = GradedAnswer((draft,), draft["text"])

    def answer_afresh(self) -> Steps[None]:
        """Use the draft if no answer is good enough, unless a limit or a failure ended the loop."""
        if self._ended:
            return
        try:
            yield from self.answer_alone("no answer is factual and complete")
        except ModelError:
            self._end("model_failed", "the model failed")
        for answer in self.answers if self._final else []:
            answer.parts[-1]["why"] += "; it is not factual and complete"

    def take_best(self, *, or_skipped: bool) -> None:
        """Use the best answer, or the best text that was skipped, if there is no answer yet."""
        if self._final is None and self.answers:
            self._final = best_of(self.answers)
        if self._final is None and self._skipped and or_skipped:
            self._final = max(self._skipped, key=lambda skipped: skipped.score)
            self._final.parts[-1]["why"] += "; the best of what was written, as nothing was of use"

    def outcome(self, verdict: Verdict) -> ReflectionOutcome:
        """Return the answer, empty if there is none."""
        final = self._final or GradedAnswer()
        for part in final.parts:
            part["kept"] = part["chosen"] = True
        of_parts = (flag for part in final.parts for flag in part["flags"])
        flags: list[Flag] = [flag for flag in of_parts if flag in _OF_THE_ANSWER]
        if not final.parts:
            flags.append("empty")
        return ReflectionOutcome(
            answer=final.text,
            raw=final.raw,
            passages=self._offered.records(),
            cited=[part["passage"] for part in final.parts if part["passage"] is not None],
            score=final.score,
            choices=[verdict.choice(0, 0)],
            critiques=self._critiques,
            flags=list(dict.fromkeys((*self._flags, *flags))),
            tokens=self._tokens,
        )

    def _fate(self, place: int, grade: GradeLevel) -> Steps[Critique]:
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

    def _with_passage(self, place: int, grade: GradeLevel) -> Steps[Critique | None]:
        """Generate with a passage and judge the candidate; None: a limit was reached before."""
        draft = (yield from self._drafted()) if grade == "medium" else None
        before = NO_RETRIEVAL + draft["text"] if draft else ""
        candidate = yield from self._generate(before, place)
        if candidate is None:
            return None
        critique = self._critique(candidate, place, candidate.text, segment=1 if draft else 0)
        why = refusal(candidate, grade, self._settings)
        critique["why"] = why or use(grade, mixed=draft is not None)
        if why and "empty" not in critique["flags"]:
            self._skipped.append(GradedAnswer((critique,), candidate.text))
        if not why:
            parts = (draft, critique) if draft else (critique,)
            self._take(GradedAnswer(parts, before + candidate.text), ends=is_good_enough(candidate))
        return critique

    def _take(self, answer: GradedAnswer, *, ends: bool) -> None:
        """Add an answer to those to choose from, or end the loop with it."""
        self.answers.append(answer)
        for part in answer.parts:
            part["kept"], part["chosen"] = True, ends
        if ends:
            self._final, self._ended = answer, "an earlier answer is factual and complete"
            for other in self.answers:
                said = "it is" if other is answer else "a later answer is"
                other.parts[-1]["why"] += f"; {said} factual and complete"

    def _drafted(self) -> Steps[Critique | None]:
        """Return the draft from own knowledge; None if it is empty or a limit was reached before.

        It ends where the model asks for a passage: what follows relies on one that it made up.
        """
        if self._draft is None:
            candidate = yield from self._generate("", None)
            if candidate is None:
                return None
            text = candidate.text.partition(RETRIEVAL)[0].partition(OPEN)[0]
            self._draft = self._critique(candidate, None, text)
            is_empty = "empty" in self._draft["flags"]
            self._draft["why"] = "it is empty" if is_empty else "a draft from own knowledge"
            yield self._judged(self._draft)
        return None if "empty" in self._draft["flags"] else self._draft

    def _generate(self, before: str, place: int | None) -> Steps[Candidate | None]:
        """Generate one whole answer; None: a limit is reached. The first one is always made."""
        room = self._settings.max_reflection_tokens - self._tokens
        if room < 1:
            self._end("token_limit", "all tokens were spent before")
        elif self._begun and self._clock() >= self._latest:
            self._end("time_limit", "the time was over before")
        else:
            self._begun = True
            limits = SegmentLimits(min(room, self._settings.max_segment_tokens), whole_answer=True)
            prefix = self._asked.prefix(before)
            request = AskCandidates(prefix, (self._offered[place],), limits)
            candidate: Candidate = (yield [request])[0][0]
            self._tokens += candidate.tokens
            return candidate
        return None

    def _end(self, flag: Flag, why: str) -> None:
        self._flags.append(flag)
        self._ended = why

    def _critique(
        self, candidate: Candidate, place: int | None, text: str, segment: int = 0
    ) -> Critique:
        scored = rules_of(self._settings).scored(candidate, has_passage=place is not None)
        critique = critique_of(candidate, scored, self._offered.numbered(place), segment=segment)
        critique["text"] = text
        raised: dict[Flag, bool] = {
            "empty": not short_answer(text),
            "cut": candidate.ending == "length",
            "invented_passage": OPEN in candidate.text,
        }
        critique["flags"].extend(flag for flag, is_found in raised.items() if is_found)
        return critique

    def _judged(self, critique: Critique) -> Sequence[Judged]:
        self._critiques.append(critique)
        return [Judged((), (critique.copy(),))]


def check_grades(passages: Sequence[Passage] | None, grades: Sequence[GradeLevel]) -> None:
    """Check that there is a known grade for each passage.

    Raises:
        ValueError: there are no passages (None), not as many grades, or an unknown one.
    """
    known = get_args(GradeLevel)
    if passages is None:
        raise ValueError("passages: None; give those that were graded")
    if len(grades) != len(passages):
        raise ValueError(f"grades: {len(grades)} for {len(passages)} passages; give one for each")
    for grade in grades:
        if grade not in known:
            raise ValueError(f"grades: {grade!r}; each must be one of {', '.join(known)}")


def grades_by_place(
    passages: Sequence[Passage], grades: Sequence[GradeLevel], offered: Offered
) -> Mapping[int, GradeLevel]:
    """Offer the passages, and return the grade of each by its index.

    A repeated passage has the grade it had first.
    """
    by_place: dict[int, GradeLevel] = {}
    for passage, grade in zip(passages, grades, strict=True):
        by_place.setdefault(offered.add([passage])[0], grade)
    return by_place


def unread(passage: tuple[int, Passage] | None, why: str) -> Critique:
    """Return the critique of a passage that nothing was generated with."""
    critique = critique_of(_NOTHING, _UNSCORED, passage)
    critique["why"] = why
    return critique


def refusal(candidate: Candidate, grade: GradeLevel, settings: ReflectionSettings) -> str:
    """Return why an answer is of no use, in a few words; empty if it is of use."""
    if argmax("relevance", candidate.relevance) != RELEVANT:
        return f"it does not say {RELEVANT}"
    if not short_answer(candidate.text):
        return "it is empty"
    if grade == "high" and argmax("support", candidate.support) not in (FULLY, PARTIALLY):
        return f"it says neither {FULLY} nor {PARTIALLY}"
    undesired = undesired_tokens(candidate, settings) if settings.constraints == "hard" else []
    return f"it says {', '.join(undesired)}" if undesired else ""


def use(grade: GradeLevel, *, mixed: bool) -> str:
    """Return how an answer is used, in a few words."""
    if grade == "high":
        return "its grade is high: of full use"
    how = "mixed with own knowledge" if mixed else "alone, since there is no draft to mix it with"
    return f"its grade is medium: {how}"


def is_good_enough(candidate: Candidate) -> bool:
    """Return whether an answer is factual (fully supported) and complete (utility 4 or 5)."""
    is_factual = argmax("support", candidate.support) == FULLY
    return is_factual and argmax("utility", candidate.utility) in UTILITY[3:]


def best_of(answers: Sequence[GradedAnswer]) -> GradedAnswer:
    """Return the first with the best score, and add to each critique how it compares."""
    best = max(answers, key=lambda answer: answer.score)
    for answer in answers:
        relation = f"score {answer.score:.3f} is below {best.score:.3f}"
        if answer is best:
            relation = f"the best score, {best.score:.3f}"
        elif answer.score == best.score:
            relation = "as good as an earlier one"
        answer.parts[-1]["why"] += f"; {relation}"
    return best
