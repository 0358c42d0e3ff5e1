"""Values, errors and events: they travel, can be shown, and tell no secret."""

import copy
import pickle
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from crag.errors import (
    CragError,
    DataError,
    IndexNotFoundError,
    MissingPackageError,
    SearchError,
    SettingsError,
)
from crag.events import event, redact
from crag.plain import plain_json, problem_of, well_formed, without_credentials


class Silent:
    def __str__(self) -> str:
        raise LookupError


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_written(text: str) -> None:
    written = well_formed(text)
    assert written.encode().decode() == written
    assert well_formed(written) == written
    assert "\0" not in written


def test_pairs_are_joined_and_halves_replaced() -> None:
    assert well_formed("\ud83d\ude00 \ud83d fi\0lter") == "😀 \ufffd fi\ufffdlter"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (date(2026, 1, 31), "2026-01-31"),
        (True, True),
        (float("nan"), None),
        (np.float32(0.5), 0.5),
        (10**400, 10**400),
        ({1: ("a\0", {"b"})}, {"1": ["a\ufffd", ["b"]]}),
        (Silent(), "<Silent that cannot be shown>"),
    ],
)
def test_values_become_what_can_be_stored(value: object, plain: object) -> None:
    assert plain_json(value) == plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pass@host:1/v1?key=a&b=c&d", "http://host:1/v1?key=…&b=…&…"),
        ("postgresql://u:p/w@x@h/db?sslmode=require", "postgresql://h/db?sslmode=…"),
        ("Path('http:/u:p@h/a?b')", "Path('http:/h/a?…')"),
        (
            "see https://a.example/@b/c, http://h:80/@d.",
            "see https://a.example/@b/c, http://h:80/@d.",
        ),
        ("a@b.example: is it so?", "a@b.example: is it so?"),
    ],
)
def test_addresses_are_shown_without_secrets(text: str, shown: str) -> None:
    assert without_credentials(text) == shown


class Values(BaseModel):
    number: int = Field(default=1, ge=1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"number": 0}, "number: Input should be greater than or equal to 1"),
        ("text", "the file: Input should be a valid dict"),
    ],
)
def test_what_is_wrong_is_said_with_the_field(given: Any, told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Values.model_validate(given)
    assert problem_of(caught.value, "the file").startswith(told)


@pytest.mark.parametrize(
    "error",
    [
        CragError("it failed"),
        SettingsError("k", 0, "it must be at least 1"),
        IndexNotFoundError("made"),
        DataError(Path("rows.jsonl"), "it is no JSON", 3),
        SearchError("Library", "timeout", "no answer in time"),
        MissingPackageError("ray", "crag batch --ray"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_travels_with_its_message_and_its_fields(error: CragError) -> None:
    for arrived in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301 - our own
        assert type(arrived) is type(error)
        assert str(arrived) == str(error)
        assert vars(arrived) == vars(error)


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
