import json
from datetime import date
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError, field_validator

from crag.plain import (
    allowed_by,
    counted,
    plain_json,
    problems,
    said,
    well_formed,
    without_credentials,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))


class Silent:
    def __str__(self) -> str:
        raise LookupError


class Shouting(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise LookupError


@given(ANY_TEXT)
def test_any_text_can_be_written(text: str) -> None:
    written = well_formed(text)
    assert written.encode().decode() == written
    assert well_formed(written) == written
    assert "\0" not in written
    if text.isascii() and "\0" not in text:
        assert written is text


def test_a_number_has_its_noun_in_the_singular_or_plural() -> None:
    told = [counted(number, "row") for number in (0, 1, 1_200)]
    assert told == ["0 rows", "1 row", "1,200 rows"]


def test_a_character_that_no_postgresql_stores_is_replaced() -> None:
    assert well_formed("fi\0lter") == "fi\ufffdlter"


def test_pairs_are_joined_and_halves_replaced() -> None:
    assert (
        well_formed("\ud83d\ude00 and \ud83d and \ude00\ud83d") == "😀 and \ufffd and \ufffd\ufffd"
    )
    assert type(well_formed(Shouting("x"))) is str


def test_what_cannot_be_shown_is_named_by_its_type() -> None:
    assert said(Silent()) == "<Silent that cannot be shown>"
    assert said(Shouting("\ud83d")) == "\ufffd"
    assert said(OSError("gone")) == "gone"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (date(2026, 1, 31), date(2026, 1, 31)),
        (UUID(int=7), UUID(int=7)),
        (True, True),
        (float("nan"), None),
        (10**400, str(10**400)),
        (7, 7),
        ({1: ("a", {"b"})}, {"1": ["a", ["b"]]}),
        (1 + 2j, "(1+2j)"),
        (Silent(), "<Silent that cannot be shown>"),
    ],
)
def test_values_become_what_can_be_stored(value: object, plain: object) -> None:
    assert plain_json(value) == plain


def test_a_value_within_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)
    assert json.dumps(plain_json(value)).count("[") < 50


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
    number: int = Field(default=1, ge=1, lt=10)
    share: float = Field(default=0.5, gt=0, le=1, allow_inf_nan=False)
    switch: bool = True
    day: date = date(2026, 1, 31)
    choice: Literal["words", "meaning"] = "words"
    text: str = ""
    names: list[str] = []

    @field_validator("text")
    @classmethod
    def _known(cls, text: str) -> str:
        if text == "unknown":
            raise ValueError("choose another one")
        return text


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("number", "x", "write a whole number"),
        ("number", 1.5, "write a whole number"),
        ("number", 0, "it must be at least 1"),
        ("number", 10, "it must be below 10"),
        ("share", "x", "write a number"),
        ("share", "nan", "write a number"),
        ("share", 0, "it must be above 0.0"),
        ("switch", "perhaps", "write true or false"),
        ("day", "soon", "write a day as 2026-01-31"),
        ("day", "2026-02-30", "write a day as 2026-01-31"),
        ("choice", "sound", "choose 'words' or 'meaning'"),
        ("text", 3, "write a text"),
        ("text", "unknown", "choose another one"),
        ("names", "a", "write a list"),
    ],
)
def test_what_a_value_may_be_is_said_in_our_words(field: str, value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Values.model_validate({field: value})
    assert allowed_by(caught.value.errors()[0]) == words


def test_what_is_wrong_is_said_with_the_field() -> None:
    low, none = "Input should be greater than or equal to 1", "Input should be greater than 0"
    with pytest.raises(ValidationError) as caught:
        Values.model_validate({"number": 0, "share": 0})
    assert problems(caught.value) == f"number: {low}"
    assert problems(caught.value, most=2) == f"number: {low}; share: {none}"
    with pytest.raises(ValidationError) as caught:
        Values.model_validate("text")
    assert problems(caught.value, "the file").startswith("the file: Input should be a valid dict")
