"""Options are bounded, and the table of quirks is complete."""

import re
from typing import get_args

import pytest

from crag.errors import SettingsError
from crag.papers.experiments import released_reflection
from crag.papers.experiments.released_reflection import RELEASED_LONG, RELEASED_SHORT
from crag.reflection_settings import Compat, ReflectionSettings
from crag.settings import settings_from


def test_the_table_tells_each_quirk_once() -> None:
    table = (released_reflection.__doc__ or "").split("-\n", maxsplit=1)[1].split("Not by name")[0]
    names = re.findall(r"^(\w+)", table, re.MULTILINE)
    assert names == list(get_args(Compat))


def test_the_released_sets_part_all_but_the_papers_own() -> None:
    assert not RELEASED_SHORT & RELEASED_LONG
    papers_own = {"desired_token_only", "share_of_three"}
    released = set(get_args(Compat)) - papers_own - {"released_biography"}
    assert released == RELEASED_SHORT | RELEASED_LONG


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"delta": 1.1}, "delta"),
        ({"beam_width": 0}, "beam_width"),
        ({"max_depth": 65}, "max_depth"),
        ({"retrieval_mode": "sometimes"}, "retrieval_mode"),
        ({"weight_support": -1}, "weight_support"),
        ({"weight_utility": float("nan")}, "weight_utility"),
        ({"compat": ["no_such_quirk"]}, "compat"),
        ({"undesired": ["[Retrieval]"]}, "undesired"),
        ({"beam": 2}, "beam"),
    ],
)
def test_what_is_out_of_range_is_named(values: dict[str, object], field: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_from(values)
    assert field in str(raised.value)


def test_values_are_validated_and_frozen() -> None:
    given = ReflectionSettings.model_validate({"retrieval_mode": "hard", "compat": "sibling_leak"})
    assert given.compat == {"sibling_leak"}
    with pytest.raises(ValueError, match="frozen"):
        given.retrieval_mode = "never"  # type: ignore[misc]
