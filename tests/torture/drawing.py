"""Settings drawn by their types and bounds, so that a new one is crossed with all others."""

import random
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt

from crag.errors import SettingsError
from crag.settings import Settings

UNDRAWN = {
    "confirm_web": "somebody has to be asked",
    "max_question_characters": "refuses the question",
    "folder": "filters of an index",
    "since": "filters of an index",
    "until": "filters of an index",
    "compat": "released programs only",
}
"""What no question of the torture can have, and why."""


def draw_settings(draw: random.Random) -> Settings:
    """Return settings of which a few are not the default; those that exclude each other are left.

    Numbers are small, at a bound as often as not.
    """
    names = [name for name in Settings.model_fields if name not in UNDRAWN]
    chosen = draw.sample(names, draw.choice((0, 1, 2, 4, 8, 16)))
    kept: dict[str, Any] = {}
    for name in chosen:
        field = Settings.model_fields[name]
        drawn = kept | {name: _value(draw, field.annotation, field.metadata)}
        try:
            Settings.model_validate(drawn)
        except SettingsError:
            continue
        kept = drawn
    return Settings.model_validate(kept)


def _value(draw: random.Random, kind: Any, bounds: list[Any]) -> Any:
    if get_origin(kind) in {Union, UnionType}:
        kind = draw.choice(get_args(kind))
    if get_origin(kind) is Literal:
        return draw.choice(get_args(kind))
    if get_origin(kind) is frozenset:
        (member,) = get_args(kind)
        names = get_args(member)
        return frozenset(draw.sample(names, draw.randrange(len(names) + 1)))
    return _OF_KIND[kind](draw, *_range(bounds))


def _range(bounds: list[Any]) -> tuple[float, float]:
    low = next((one.ge if isinstance(one, Ge) else one.gt + 0.01 for one in bounds
                if isinstance(one, Ge | Gt)), 0)  # fmt: skip
    high = next((one.le if isinstance(one, Le) else one.lt for one in bounds
                 if isinstance(one, Le | Lt)), low + 1)  # fmt: skip
    return max(low, -2), min(high, low + 20)


_OF_KIND: Mapping[Any, Callable[[random.Random, float, float], Any]] = {
    NoneType: lambda *_: None,
    bool: lambda draw, *_: draw.random() < 0.5,
    int: lambda draw, low, high: draw.choice((int(low), draw.randint(int(low), int(high)))),
    float: lambda draw, low, high: draw.choice((low, draw.uniform(low, high))),
}
