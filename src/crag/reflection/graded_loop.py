"""The poster's variant of Self-CRAG: passage by passage, until an answer is good enough.

The CRAG poster sketches it as pseudocode, without results. It is not the method of the paper, in
which Self-RAG reads the corrected knowledge.

grade   the model says of its answer   use
------- ------------------------------ ------------------------------------------------------
high    relevant, fully or partially   full: the answer from the passage
        supported
medium  relevant                       mixed: a draft from the model's own knowledge, continued
                                       with the passage
low     (it is not asked)              none

Anything else is skipped. An answer ends the loop if it is factual, that is fully supported (of a
mixed one the continuation, since only that is judged against a passage), and complete, that is of
utility 4 or 5. If none is, the best score of all that were used wins.
"""

from collections.abc import Sequence

from crag.errors import ModelError
from crag.parts import Candidate, SegmentLimits, continuations
from crag.reflection.cleaning import cleaned, short_answer
from crag.reflection.driver import Asked, Driver, Offered
from crag.reflection.retrieval_decision import opening_choice
from crag.reflection.scoring import argmax, critique_of, objection
from crag.reflection_tokens import (
    FULLY,
    NO_RETRIEVAL,
    OPEN,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)
from crag.state import Critique, Flag, Reflection

ALONE = "the answer without a passage: "
"""Comes before the reason in the critique of a draft that is the whole answer."""
_NOTHING = Candidate("", None, None, None, 0.0, 0, "end")


def graded_loop(asked: Asked, driver: Driver) -> Reflection:
    """Answer from one passage after the other; one without a grade counts as medium.

    The draft is the whole answer if the decision is not to retrieve, or where own knowledge is
    allowed if no passage was of use; otherwise the answer is then empty. Answers to closed tasks
    are not summed.
    """
    return _GradedLoop(asked, driver).run()


class _GradedLoop:
    """One run; an answer is a list of critiques, that of its passage last."""

    def __init__(self, asked: Asked, driver: Driver) -> None:
        self._asked, self._driver, self._settings = asked, driver, driver.settings
        self._offered = Offered()
        self._critiques: list[Critique] = []
        self._answers: list[list[Critique]] = []
        """From the passages that were of use."""
        self._draft: Critique | None = None
        self._flags: list[Flag] = []

    def run(self) -> Reflection:
        choice = opening_choice(self._asked, self._driver)
        if choice["action"] == "no_retrieve":
            final, why = self._drafted(), choice["why"]
        else:
            final, why = self._read(), "no passage was of use"
            final = final or max(self._answers, key=lambda one: one[-1]["total"], default=[])
            if not final and self._settings.allow_own_knowledge:
                final = self._drafted()
        for part in final:
            part["kept"] = part["chosen"] = True
            if len(final) == 1 and part["passage"] is None:
                part["why"] = f"{ALONE}{why}"
            self._flags.extend(flag for flag in part["flags"] if flag in {"empty", "cut"})
        if not final:
            self._flags.append("empty")
        return Reflection(
            choices=[choice], passages=self._offered.records, critiques=self._critiques, beam=None,
            answer=short_answer(" ".join(cleaned(part["text"]) for part in final)),
            raw=_before(final[:-1]) + "".join(part["text"] for part in final[-1:]),
            cited=[part["passage"] for part in final if part["passage"] is not None],
            score=final[-1]["total"] if final else 0.0,
            flags=list(dict.fromkeys(self._flags)),
        )  # fmt: skip

    def _read(self) -> list[Critique]:
        """Go through the passages; return the answer that is good enough, if there is one.

        A `ModelError` after the first passage of use ends the loop.
        """
        final, ended = list[Critique](), ""
        if not self._offered.add(self._asked.passages or ()):
            self._flags.append("no_passages")
        for place, record in enumerate(self._offered.records):
            grade = record.get("grade") or "medium"
            try:
                if grade != "low" and not ended:
                    final = self._with_passage(place, grade)
                    ended = "an earlier answer is factual and complete" if final else ""
                    continue
            except ModelError:
                if not self._answers:
                    raise
                self._flags.append("model_failed")
                ended = "the model failed"
            why = "its grade is low" if grade == "low" else ended
            unread = critique_of(_NOTHING, place, self._settings)
            unread["relevance"] = unread["support"] = None
            unread["flags"], unread["why"] = [], why
            self._critiques.append(unread)
        return final

    def _with_passage(self, place: int, grade: str) -> list[Critique]:
        """Generate with a passage and judge it; return the answer if it ends the loop."""
        draft = self._drafted() if grade == "medium" else []
        candidate, critique = self._written(draft, place)
        critique["why"] = why = self._refusal(candidate, critique, grade)
        if why:
            return []
        use = "of full use"
        if grade == "medium":
            use = "mixed with own knowledge" if draft else "alone, since there is no draft"
        critique["why"] = f"its grade is {grade}: {use}"
        answer = [*draft, critique]
        self._answers.append(answer)
        for part in answer:
            part["kept"] = True
        is_factual = argmax("support", candidate.support) == FULLY
        if not (is_factual and argmax("utility", candidate.utility) in UTILITY[3:]):
            return []
        critique["why"] += "; it is factual and complete"
        return answer

    def _refusal(self, candidate: Candidate, critique: Critique, grade: str) -> str:
        """Return why an answer is of no use, in a few words; empty if it is of use."""
        if argmax("relevance", candidate.relevance) != RELEVANT:
            return f"it does not say {RELEVANT}"
        if "empty" in critique["flags"]:
            return "it is empty"
        if grade == "high" and argmax("support", candidate.support) not in (FULLY, PARTIALLY):
            return f"it says neither {FULLY} nor {PARTIALLY}"
        undesired = objection(critique, self._settings)
        return f"it says {undesired}" if undesired else ""

    def _drafted(self) -> list[Critique]:
        """Return the draft from own knowledge, which is made once; nothing if it is empty."""
        if self._draft is None:
            _, self._draft = self._written([], None)
            is_empty = "empty" in self._draft["flags"]
            self._draft["why"] = "it is empty" if is_empty else "a draft from own knowledge"
        return [] if "empty" in self._draft["flags"] else [self._draft]

    def _written(self, draft: Sequence[Critique], place: int | None) -> tuple[Candidate, Critique]:
        """Generate a whole answer after the draft, or the draft itself, and record its scores.

        A draft ends where the model asks for a passage: what follows relies on one that it made up.
        """
        asked = continuations(self._asked.prefix(_before(draft)), [self._offered[place]])
        limits = SegmentLimits(self._settings.max_new_tokens, whole_answer=True)
        [candidate] = self._driver.candidates(asked, limits)
        text = candidate.text
        if place is None:
            text = text.partition(RETRIEVAL)[0].partition(OPEN)[0]
        critique = critique_of(candidate, place, self._settings, text=text, segment=len(draft))
        self._critiques.append(critique)
        return candidate, critique


def _before(draft: Sequence[Critique]) -> str:
    """Return a draft as it stands before a passage."""
    return "".join(NO_RETRIEVAL + part["text"] for part in draft)
