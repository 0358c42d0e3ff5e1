"""Each option that restores a released behaviour gives what the released program gives.

`released.jsonl` has what Self-RAG's own programs answered with scripted models. Where a checkout
is, `make audit-official` asks them again, in many more runs, and can write it anew.
"""

import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from crag.papers.experiments.released_reflection import RELEASED_LONG, RELEASED_SHORT
from crag.parts import Candidate, Decision, Passage
from crag.reflection.driver import Asked
from crag.reflection.long_form import long_form
from crag.reflection.scoring import retrieve_ratio
from crag.reflection.short_form import short_form
from crag.reflection.testing import FakeReflection, fake_candidate
from crag.reflection_settings import Compat, ReflectionSettings
from crag.reflection_tokens import CONTINUE, NO_RETRIEVAL, RETRIEVAL
from tests.reflection.scripted import run

MEASUREMENTS = str(Path(__file__).parents[2] / "papers" / "measurements")


def found(query: str) -> Sequence[Passage]:
    assert query
    return [Passage("T", "text")]


@pytest.fixture(scope="module")
def programs() -> Any:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(MEASUREMENTS)
        yield import_module("official_self_rag")
    for name in ("official_self_rag", "official_program", "scripted_model"):
        sys.modules.pop(name)


@pytest.fixture(scope="module")
def recorded(programs: Any) -> dict[str, list[Any]]:
    """What was recorded, by the name of the case."""
    by_case = defaultdict(list)
    for recording in programs.recordings():
        by_case[recording.case.name].append(recording)
    return by_case


def test_every_recorded_answer_is_ours(programs: Any, recorded: dict[str, list[Any]]) -> None:
    assert list(recorded) == [case.name for case in programs.CASES]
    assert sum(map(len, recorded.values())) > 500
    for name, recordings in recorded.items():
        pairs = [(programs.ours(one.case, one.seed), one.answer) for one in recordings]
        same = sum(ours == theirs for ours, theirs in pairs)
        print(f"{name}: equal in {same} of {len(pairs)}")  # noqa: T201 - see it with -s
        assert [pair for pair in pairs if pair[0] != pair[1]] == [], name


@pytest.mark.parametrize("quirk", sorted(RELEASED_SHORT | RELEASED_LONG | {"released_biography"}))
def test_each_option_is_needed(
    programs: Any, recorded: dict[str, list[Any]], quirk: Compat
) -> None:
    is_short = quirk in RELEASED_SHORT
    fitting = [one for case in recorded.values() for one in case if is_short == one.case.is_short]
    fitting.sort(key=lambda one: one.seed)  # One of each case, as few tell of a rare quirk.
    assert any(programs.ours(one.case, one.seed, quirk) != one.answer for one in fitting)


def test_what_was_recorded_has_what_programs_stumble_over(recorded: dict[str, list[Any]]) -> None:
    texts = [one.answer[0] for case in recorded.values() for one in case]
    assert sum("\n" in text for text in texts) > 20
    assert sum(text.startswith(" ") for text in texts) > 20
    assert sum(text.startswith(" [1]. ") or "  [2]. " in text for text in texts) > 5
    assert sum(not text for text in texts) > 5
    assert sum(CONTINUE in text for text in texts) > 20
    alone = [not one.answer[1] for one in recorded["ASQA, adaptive"]]
    assert 5 < sum(alone) < len(alone) - 5
    # A model without tokens retrieves only where it spells one out.
    bare = [one.answer[1] for one in recorded["ASQA, adaptive, a model without tokens"]]
    assert len(bare) > sum(not cited for cited in bare) > 20


def test_an_answer_without_retrieval_ends_at_the_first_empty_line() -> None:
    options = ReflectionSettings(form="long", retrieval_mode="never", compat=RELEASED_LONG)
    text = " One.\nTwo.[Utility:5]\n\nThree."
    backend = FakeReflection(lambda _, __: Candidate(text, None, None, None, -1.0, 3, "end"))
    outcome = run(long_form(Asked("Q?", "Q?"), options), backend, found)
    assert (outcome["answer"], outcome["cited"]) == ("One.\nTwo.", [])


@pytest.mark.parametrize(
    ("draft", "share", "action"),
    [
        ("Ada.[Retrieval]", 0.9, "retrieve"),
        ("Ada.[Retrieval]", 0.1, "no_retrieve"),
        ("Ada.", 0.9, "no_retrieve"),
        ("Ada.\n\n[Retrieval]", 0.9, "no_retrieve"),
    ],
)
def test_the_released_draft_decides_with_the_ratio(draft: str, share: float, action: str) -> None:
    told = Decision({RETRIEVAL: share, NO_RETRIEVAL: 1 - share}, RETRIEVAL)
    backend = FakeReflection(lambda *_: fake_candidate(draft), otherwise=told)
    options = ReflectionSettings(form="long", compat=frozenset({"released_draft"}))
    outcome = run(long_form(Asked("Q?", "Q?"), options), backend, found)
    assert outcome["choices"][0]["action"] == action
    _, passages, limits = backend.generated[0]
    assert (passages, limits.max_tokens, limits.is_draft) == ((None,), 25, True)
    assert not any(later.is_draft for _, _, later in backend.generated[1:])


@pytest.mark.parametrize("over_all", [False, True], ids=["yes and no", "three tokens"])
def test_share_of_retrieval(over_all: bool) -> None:
    for seed in range(1000):
        draw = random.Random(seed)  # noqa: S311 - made-up data
        yes, no, more = (draw.random() for _ in range(3))
        told = {RETRIEVAL: yes, NO_RETRIEVAL: no, CONTINUE: more}
        expected = yes / (yes + no + more) if over_all else yes / (yes + no)
        others = (NO_RETRIEVAL, CONTINUE) if over_all else (NO_RETRIEVAL,)
        ours, _ = retrieve_ratio(told, others)
        assert ours == pytest.approx(expected)


@pytest.mark.parametrize(("compat", "retrieves"), [("", True), ("share_of_three", False)])
def test_the_share_of_three_tokens_decides(compat: str, retrieves: bool) -> None:
    told = Decision({RETRIEVAL: 0.1, NO_RETRIEVAL: 0.1, CONTINUE: 0.8}, CONTINUE)
    options = ReflectionSettings.model_validate({"compat": compat})
    backend = FakeReflection(lambda *_: fake_candidate("Ada."), otherwise=told)
    outcome = run(short_form(Asked("Q?", "Q?"), options), backend, found)
    assert (outcome["choices"][0]["action"] == "retrieve") == retrieves
