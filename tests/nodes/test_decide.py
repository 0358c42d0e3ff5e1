"""The decision whether to retrieve: what it asks for, writes and refuses."""

from typing import Any

import pytest

from crag.errors import SettingsError
from crag.nodes.decide import Decide
from crag.papers.released.long_form import RELEASED
from crag.papers.released.reflection import released_settings
from crag.reflection.testing import FakeReflection, fake_decision
from crag.settings import Settings

ASKED: Any = {"question": "Who wrote it?"}


def decided(backend: Any, **settings: Any) -> Any:
    return Decide(backend, grades=True).run(ASKED, released_settings(settings))


def test_it_writes_the_decision() -> None:
    backend = FakeReflection({}, otherwise=fake_decision(0.3), approximation="by rule")
    update = decided(backend)
    assert update["reflection"]["approximation"] == "by rule"
    (choice,) = update["reflection"]["choices"]
    assert (choice["action"], choice["ratio"]) == ("retrieve", 0.3)
    assert choice["why"] == "0.300 is above 0.2"
    assert [prefix.instruction for prefix in backend.decided] == ["Who wrote it?"]
    assert update["usage"] == {"llm_calls": 1}
    assert update["events"] == []


@pytest.mark.parametrize(("released", "action"), [(True, "no_retrieve"), (False, "retrieve")])
def test_another_program_may_decide(released: bool, action: str) -> None:
    node = Decide(FakeReflection({}, otherwise=fake_decision(0.9)), RELEASED, grades=True)
    settings = released_settings({"released": released, "log_ratio": released})
    assert node.run(ASKED, settings)["reflection"]["choices"][0]["action"] == action


def test_a_task_is_asked_in_its_own_words() -> None:
    backend = FakeReflection({})
    decided(backend, task="pubhealth")
    assert backend.decided[0].instruction.startswith("Is the following statement correct or not?")
    assert backend.decided[0].instruction.endswith("Who wrote it?")


def test_a_failure_retrieves_and_is_told() -> None:
    update = decided(FakeReflection({}, fails_after=0))
    assert update["reflection"]["choices"][0]["action"] == "retrieve"
    assert update["reflection"]["choices"][0]["why"] == "the model could not be asked"
    (event,) = update["events"]
    assert (event["kind"], event["node"], event["fallback"]) == (
        "model_failed", "decide", "retrieve",
    )  # fmt: skip


def test_the_posters_rule_needs_grades() -> None:
    poster = Settings(form="poster")
    with pytest.raises(SettingsError, match="needs Self-CRAG"):
        Decide(FakeReflection({}), grades=False).run(ASKED, poster)
    assert Decide(FakeReflection({}), grades=True).run(ASKED, poster)["reflection"]["choices"]
