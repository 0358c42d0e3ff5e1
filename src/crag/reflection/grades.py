"""What the poster's variant makes of a passage's grade and of what the model says of its answer."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from crag.reflection.backend import Candidate, Passage
from crag.reflection.cleaning import cleaned, short_answer
from crag.reflection.critiques import Offered, critique_of
from crag.reflection.options import Options
from crag.reflection.records import Critique
from crag.reflection.scoring import Scored, argmax, undesired_tokens
from crag.reflection.tokens import FULLY, PARTIALLY, RELEVANT, UTILITY

Grade = Literal["high", "medium", "low"]
"""How well a passage serves, judged before the model reads it."""

_NOTHING = Candidate("", None, None, None, 0.0, 0, "end")
_UNSCORED = Scored(None, None, 0.0, 0.0, 0.0, ("not_generated",))


class Answer(NamedTuple):
    """A text that may become the answer."""

    parts: tuple[Critique, ...] = ()
    """The draft, if it is in it, and what was generated with the passage."""
    raw: str = ""
    """With tokens."""

    @property
    def score(self) -> float:
        """That of the part with the passage; 0 for no answer."""
        return self.parts[-1]["total"] if self.parts else 0.0

    @property
    def text(self) -> str:
        """Without tokens."""
        return short_answer(" ".join(cleaned(part["text"]) for part in self.parts))


def check_grades(passages: Sequence[Passage] | None, grades: Sequence[Grade]) -> None:
    """Refuse grades that do not go with the passages.

    Raises:
        ValueError: there are no passages to grade (None), not as many grades, or an unknown one.
    """
    known = get_args(Grade)
    if passages is None:
        raise ValueError("passages: None; give those that were graded")
    if len(grades) != len(passages):
        raise ValueError(f"grades: {len(grades)} for {len(passages)} passages; give one for each")
    for grade in grades:
        if grade not in known:
            raise ValueError(f"grades: {grade!r}; each must be one of {', '.join(known)}")


def graded(
    passages: Sequence[Passage], grades: Sequence[Grade], offered: Offered
) -> Mapping[int, Grade]:
    """Offer the passages, and return the grade of each by its index.

    A repeated passage has the grade it had first.
    """
    found: dict[int, Grade] = {}
    for passage, grade in zip(passages, grades, strict=True):
        found.setdefault(offered.add([passage])[0], grade)
    return found


def unread(passage: tuple[int, Passage] | None, why: str) -> Critique:
    """Return the critique of a passage that nothing was generated with."""
    critique = critique_of(_NOTHING, _UNSCORED, passage)
    critique["why"] = why
    return critique


def refusal(candidate: Candidate, grade: Grade, options: Options) -> str:
    """Return why an answer is of no use, in a few words; empty if it is of use."""
    if argmax("relevance", candidate.relevance) != RELEVANT:
        return f"it does not say {RELEVANT}"
    if not short_answer(candidate.text):
        return "it is empty"
    if grade == "high" and argmax("support", candidate.support) not in (FULLY, PARTIALLY):
        return f"it says neither {FULLY} nor {PARTIALLY}"
    undesired = undesired_tokens(candidate, options) if options.constraints == "hard" else []
    return f"it says {', '.join(undesired)}" if undesired else ""


def use(grade: Grade, *, mixed: bool) -> str:
    """Return how an answer is used, in a few words."""
    if grade == "high":
        return "its grade is high: of full use"
    how = "mixed with own knowledge" if mixed else "alone, since there is no draft to mix it with"
    return f"its grade is medium: {how}"


def is_good_enough(candidate: Candidate) -> bool:
    """Say whether an answer is factual (fully supported) and complete (utility 4 or 5)."""
    is_factual = argmax("support", candidate.support) == FULLY
    return is_factual and argmax("utility", candidate.utility) in UTILITY[3:]


def best_of(answers: Sequence[Answer]) -> Answer:
    """Return the first of the best scores, and write into the critiques how each compares."""
    best = max(answers, key=lambda answer: answer.score)
    for answer in answers:
        relation = f"score {answer.score:.3f} is below {best.score:.3f}"
        if answer is best:
            relation = f"the best score, {best.score:.3f}"
        elif answer.score == best.score:
            relation = "as good as an earlier one"
        answer.parts[-1]["why"] += f"; {relation}"
    return best
