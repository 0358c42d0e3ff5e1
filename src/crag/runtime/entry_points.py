"""What another package adds to Self-RAG: entry points of the group `crag.reflection`."""

from importlib.metadata import entry_points
from typing import Any

from crag.errors import CragError


def load(group: str, name: str) -> Any:
    """Return what the entry point names, or None if no package adds that name.

    Raises:
        CragError: it cannot be imported.
    """
    for point in entry_points(group=group, name=name):
        try:
            return point.load()
        except (ImportError, AttributeError) as error:
            raise CragError(f"{group} {name!r} cannot be loaded: {error}") from error
    return None
