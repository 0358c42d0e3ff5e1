"""Events tell what happened, and no secret."""

import pytest

from crag.events import event, redact


def test_a_long_detail_is_cut() -> None:
    assert len(event("model_failed", "generate", "x" * 10_000)["detail"]) == 500


@pytest.mark.parametrize(
    "key", ["sk-proj-abcdef123456", "tvly-dev-abcdef123456", "hf_abcdef123456"]
)
def test_keys_are_redacted_by_their_shape(key: str) -> None:
    assert key not in redact(f"Incorrect API key provided: {key}.")


def test_keys_are_redacted_by_their_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "plain-words-key")
    assert redact("refused plain-words-key here") == "refused [secret] here"
