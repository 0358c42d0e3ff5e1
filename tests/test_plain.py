import json
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.plain import plain_json, said, well_formed, without_credentials

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
    if text.isascii():
        assert written is text


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
