"""The environment and settings from the options of a command."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from crag.errors import SettingsError
from crag.runtime.environment import Environment
from crag.settings import Settings, settings_from

_NOTHING = {"", "none", "null"}


def environment(location: str | None) -> Environment:
    """Return the environment, with the index from the command line."""
    found = Environment()
    return found.model_copy(update={"index": location}) if location else found


def settings(assignments: Sequence[str]) -> Settings:
    """Read the settings of a run from ``name=value`` texts; for some settings `none` is a value.

    Raises:
        SettingsError: a text without ``=``, an unknown name, or a value out of range.
    """
    names = {
        n for n, field in Settings.model_fields.items() if "none" in get_args(field.annotation)
    }
    values = assigned(assignments)
    return settings_from(
        {n: "none" if value is None and n in names else value for n, value in values.items()}
    )


def filters(
    folder: str | None, kind: str | None, since: str | None, until: str | None
) -> list[str]:
    """Return options that filter documents as ``name=value`` texts.

    A folder that exists is named by its absolute path.
    """
    if folder and Path(folder).exists():
        folder = str(Path(folder).resolve())
    given = {"folder": folder, "kind": kind, "since": since, "until": until}
    return [f"{name}={value}" for name, value in given.items() if value is not None]


def assigned(assignments: Sequence[str]) -> dict[str, object]:
    """Read ``name=value`` texts; an empty value or `none` unsets an optional setting.

    Raises:
        SettingsError: a text without ``=``.
    """
    values: dict[str, object] = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator:
            raise SettingsError(assignment, "", "write it as name=value")
        values[name.strip()] = None if value.strip().lower() in _NOTHING else value.strip()
    return values
