"""Each option that restores a released behaviour gives what the released program gives.

`self_rag.jsonl` has what Self-RAG's own programs answered with scripted models. Where a checkout
is, `make audit-official` asks them again, in many more runs, and can write it anew.
"""

from collections import defaultdict
from typing import Any, NamedTuple

import pytest

from crag.errors import SettingsError
from crag.papers.released import official_self_rag
from crag.papers.released.official import recordings
from crag.papers.released.reflection import (
    RELEASED_LONG,
    RELEASED_SHORT,
    Compat,
    ReleasedSettings,
    grader,
    long_form_score,
    released_ratio,
    released_settings,
    short_form_score,
)
from crag.papers.released.rules import ReleasedRules
from crag.parts import Decision
from crag.reflection.beam import long_form
from crag.reflection.driver import Asked, Driver
from crag.reflection.short_form import short_form
from crag.reflection.testing import FakeReflection, fake_candidate
from crag.reflection_tokens import CONTINUE, NO_RETRIEVAL, RETRIEVAL
from crag.state import OfferedPassage, Reflection
from tests.reflection.test_scoring import CANDIDATE, RELEVANCE, SUPPORT, USE

RULES = ReleasedRules()
PASSAGE = OfferedPassage(title="T", text="text", label="document", grade="", strips=[])
ASKED = Asked("Q?", "Q?", passages=(PASSAGE,))


def released(*compat: str, **more: Any) -> ReleasedSettings:
    return released_settings({"compat": ",".join(compat), **more})


def answered(backend: FakeReflection, settings: ReleasedSettings) -> Reflection:
    driver = Driver(backend, settings, rules=RULES)
    return long_form(ASKED, driver) if settings.form == "long" else short_form(ASKED, driver)


class Recorded(NamedTuple):
    """What a released program answered."""

    asking: official_self_rag.Asking
    seed: int
    answer: tuple[str, list[str]]


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[Recorded]]:
    """What was recorded, by the name of the case."""
    by_case = defaultdict(list)
    found = recordings(official_self_rag.CASES, official_self_rag.RECORDED)
    for case, seed, (text, cited) in found:
        one = Recorded(official_self_rag.ASKINGS[case.name], seed, (text, cited))
        by_case[case.name].append(one)
    return by_case


def test_every_recorded_answer_is_ours(recorded: dict[str, list[Recorded]]) -> None:
    assert list(recorded) == [case.name for case in official_self_rag.CASES]
    assert sum(map(len, recorded.values())) > 500
    for name, answers in recorded.items():
        pairs = [(official_self_rag.ours(one.asking, one.seed), one.answer) for one in answers]
        assert [pair for pair in pairs if pair[0] != pair[1]] == [], name


@pytest.mark.parametrize("quirk", sorted(RELEASED_SHORT | RELEASED_LONG | {"released_biography"}))
def test_each_option_is_needed(recorded: dict[str, list[Recorded]], quirk: Compat) -> None:
    is_short = quirk in RELEASED_SHORT
    fitting = [one for case in recorded.values() for one in case if is_short == one.asking.is_short]
    fitting.sort(key=lambda one: one.seed)  # One of each case, as few tell of a rare quirk.
    assert any(official_self_rag.ours(one.asking, one.seed, quirk) != one.answer for one in fitting)


@pytest.mark.parametrize(("compat", "retrieves"), [("", True), ("share_of_three", False)])
def test_the_share_of_three_tokens_decides(compat: str, retrieves: bool) -> None:
    told = Decision({RETRIEVAL: 0.1, NO_RETRIEVAL: 0.1, CONTINUE: 0.8}, CONTINUE)
    backend = FakeReflection(lambda *_: fake_candidate("Ada."), otherwise=told)
    record = answered(backend, released(compat))
    assert (record["choices"][0]["action"] == "retrieve") == retrieves


@pytest.mark.parametrize(
    ("yes", "no", "expected"),
    [(0.9, 0.1, 0.043756), (0.5, 0.5, 0.5), (0.1, 0.9, 0.956244), (0.001, 0.0012, 0.506687)],
)
def test_the_released_ratio_is_inverted(yes: float, no: float, expected: float) -> None:
    assert released_ratio({RETRIEVAL: yes, NO_RETRIEVAL: no}) == pytest.approx(expected, abs=1e-6)
    assert released_ratio({}) == 0.5


def test_groups_are_graded_as_released_or_as_in_equation_four() -> None:
    half, only = grader(released("missing_group_half")), grader(released("desired_token_only"))
    for group, value in (("relevance", 0.5), ("support", 0.5), ("utility", 0.0)):
        assert half(group, {}) == value  # type: ignore[arg-type]
    assert only("support", SUPPORT) == pytest.approx(0.625)
    assert only("utility", USE) == pytest.approx(0.75)
    assert only("relevance", RELEVANCE) == pytest.approx(0.75)


def test_a_score_may_leave_the_confidence_of_the_model_out() -> None:
    plain = long_form_score(CANDIDATE, released(), has_passage=True)
    silent = short_form_score(CANDIDATE, released(sequence_score=False), has_passage=True)
    assert silent.total == pytest.approx(plain.total - plain.sequence)


@pytest.mark.parametrize(("accumulation", "expected"), [("sum", 4.4), ("product", 4.84)])
def test_scores_of_segments_are_summed_or_multiplied(accumulation: str, expected: float) -> None:
    segment = fake_candidate("A.", relevance=0.3, utility=None, mean_log_probability=0.0)
    table = {
        ("", "text"): segment._replace(ending="retrieve"),
        ("A.", "text"): segment._replace(text="B."),
    }
    settings = released(accumulation=accumulation, form="long", retrieval_mode="always")
    assert answered(FakeReflection(table), settings)["score"] == pytest.approx(expected)


def test_an_unknown_quirk_or_setting_is_refused() -> None:
    with pytest.raises(SettingsError, match="compat"):
        released("released_ration")
    with pytest.raises(SettingsError, match="max_depth"):
        released(max_depth=0)
