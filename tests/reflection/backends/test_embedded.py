"""Reflection by evaluator and quoter."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.parts import Candidate, Passage, Prefix, Quotation, SegmentLimits, continuations
from crag.reflection.backends.embedded import EmbeddedReflection, spread
from crag.reflection.cleaning import cleaned
from crag.reflection.driver import counting
from crag.reflection.scoring import argmax, critique_of, graded
from crag.reflection_tokens import RELEVANCE, SUPPORT, UTILITY
from crag.settings import Settings
from crag.state import Strip
from crag.testing import FakeEvaluator, FakeQuoter

QUESTION = "What year was the Eiffel Tower completed?"
TOWER = Passage(
    "Eiffel Tower",
    "The Eiffel Tower is a wrought-iron lattice tower in Paris. It was completed in 1889 for the "
    "World's Fair. It is named after Gustave Eiffel.",
)
BLACKPOOL = Passage(
    "Blackpool Tower",
    "Blackpool Tower was opened to the public on 14 May 1894. It was inspired by the one in Paris.",
)
KETTLE = Passage("Kettles", "Descale the kettle every month with vinegar. Never put it in water.")
LONG = Passage("", "First good thing. Second good thing. Third good thing.")
WHOLE, ONE = SegmentLimits(whole_answer=True), SegmentLimits()


class Sentences:
    """Quote each sentence that has the word "good", with the scores given, and count the calls."""

    def __init__(self, *scores: float, error: Exception | None = None) -> None:
        self.scores, self.error = scores or (0.9,), error
        self.calls = 0

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        del question
        self.calls += 1
        if self.error is not None:
            raise self.error
        sentences = [part + "." for part in strips[0]["text"].split(".") if "good" in part]
        scores = [self.scores[min(i, len(self.scores) - 1)] for i in range(len(sentences))]
        return [Quotation(s.strip(), 0, n) for s, n in zip(sentences, scores, strict=True)]


def texts(candidates: Sequence[Candidate]) -> list[str]:
    return [cleaned(candidate.text) for candidate in candidates]


@pytest.fixture(scope="module")
def packaged() -> EmbeddedReflection:
    evaluator = load_evaluator()
    return EmbeddedReflection(evaluator, ExtractiveAnswerer(evaluator))


def test_the_packaged_evaluator_finds_the_answer_and_the_passage(
    packaged: EmbeddedReflection,
) -> None:
    passages = [BLACKPOOL, TOWER, KETTLE]
    found = packaged.candidates(continuations(Prefix(QUESTION), passages), WHOLE)
    assert found[1].text.startswith("[Relevant]")
    assert "It was completed in 1889 for the World's Fair." in found[1].text
    assert found[1].text.endswith("[Fully supported][Utility:5]")
    totals = [critique_of(c, 0, Settings())["total"] for c in found]
    assert max(totals) == totals[1] > 3
    assert found[2].text == "[Irrelevant][Utility:1]"
    assert found[2].support is None


def test_all_passages_are_judged_in_one_call_that_is_counted() -> None:
    evaluator, quoter = FakeEvaluator({"good": 0.9, "": -0.9}), Sentences()
    backend = EmbeddedReflection(evaluator, quoter)
    passages = [Passage("A", "A good thing here."), Passage("", "Bad."), Passage("B", " ")]
    with counting() as spending:
        found = backend.candidates(continuations(Prefix("Q?"), passages), WHOLE)
    assert evaluator.calls == [("Q?", ["A // A good thing here.", "Bad."])]
    assert spending == {"evaluator_calls": 1, "evaluated_texts": 2}
    assert quoter.calls == 2
    assert texts(found) == ["A good thing here.", "", ""]
    assert [argmax("relevance", c.relevance) for c in found] == [
        "[Relevant]", "[Irrelevant]", "[Irrelevant]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "text", "tokens"),
    [(WHOLE, LONG.text, 9), (SegmentLimits(4, whole_answer=True), "First good thing.", 3)],
)
def test_short_form_takes_the_quotations_that_fit(
    limits: SegmentLimits, text: str, tokens: int
) -> None:
    backend = EmbeddedReflection(FakeEvaluator(0.9), Sentences())
    (found,) = backend.candidates(continuations(Prefix("Q?"), [LONG]), limits)
    assert texts([found]) == [text]
    assert (found.tokens, found.ending) == (tokens, "end")


def test_long_form_takes_the_best_sentence_that_was_not_given_yet() -> None:
    evaluator, quoter = FakeEvaluator(0.9), Sentences(0.7, 0.9, 0.8)
    backend = EmbeddedReflection(evaluator, quoter)
    answered, said = "", []
    endings = []
    for _ in range(4):
        (found,) = backend.candidates(continuations(Prefix("Q?", answered), [LONG]), ONE)
        answered += found.text
        said.append(cleaned(found.text))
        endings.append((found.ending, found.utility is None))
    assert said == ["Second good thing.", "Third good thing.", "First good thing.", ""]
    assert endings == [("retrieve", True), ("retrieve", True), ("end", False), ("end", False)]
    assert len(evaluator.calls) == quoter.calls == 1


@pytest.mark.parametrize(
    ("question", "sure", "expected"),
    [
        ("When was the tower completed?", True, True),
        ("When was the tower completed?", False, False),
        ("When was the tower of Blackpool completed?", True, False),
        ("When was the tower of Eiffel completed?", True, True),
    ],
)
def test_a_text_is_sure_if_its_quotation_and_the_names_are(
    question: str, sure: bool, expected: bool
) -> None:
    reflection = EmbeddedReflection(FakeEvaluator(0.9), FakeQuoter(sure=sure))
    (made,) = reflection.candidates(continuations(Prefix(question), [TOWER]), WHOLE)
    assert made.sure == expected


@given(st.floats(0, 1))
def test_the_scores_of_self_rag_give_the_degree_back(degree: float) -> None:
    relevance, support, utility = (
        spread(group, degree) for group in (RELEVANCE, SUPPORT[::-1], UTILITY)
    )
    for group in (relevance, support, utility):
        assert sum(group.values()) == pytest.approx(1)
        assert all(0 <= p <= 1 for p in group.values())
    assert graded("relevance", relevance) == pytest.approx(degree)
    assert graded("support", support) == pytest.approx(degree)
    assert graded("utility", utility) == pytest.approx(2 * degree - 1, abs=1e-9)
