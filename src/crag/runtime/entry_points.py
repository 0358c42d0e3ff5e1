"""Parts that other packages add: entry points by group and name."""

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from crag.errors import CragError

Group = Literal["crag.evaluators", "crag.reflection", "crag.rerankers"]
"""What is made: evaluators and rerankers by a callable without arguments. For `crag.reflection` see
`crag.reflection.rules`."""


def imported(name: str) -> Any:
    """Return what ``module:attribute`` names.

    Raises:
        ImportError: there is no such module.
        AttributeError: the module has no such attribute.
        ValueError: it is no name of that form.
    """
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def names(group: Group) -> list[str]:
    """Return the names that installed packages add, sorted."""
    return sorted({point.name for point in entry_points(group=group)})


def load(group: Group, name: str) -> Any:
    """Return what the entry point names, or None if no package adds that name.

    Raises:
        CragError: it cannot be imported, or two packages add the name.
    """
    found = list(entry_points(group=group, name=name))
    if not found:
        return None
    if len(found) > 1:
        packages = " and ".join(map(_package, found))
        message = f"{group} {name!r} is added by {packages}: uninstall all but one of them"
        raise CragError(message)
    try:
        return found[0].load()
    except (ImportError, AttributeError) as error:
        message = f"{group} {name!r} of {_package(found[0])} cannot be loaded: {error}"
        raise CragError(message) from error


def make(group: Group, name: str, kind: type[Any]) -> Any:
    """Return the part that the entry point makes, or None if no package adds that name.

    Raises:
        CragError: it cannot be made, or is no `kind`.
    """
    maker = load(group, name)
    if maker is None:
        return None
    part = maker()
    if not isinstance(part, kind):
        message = f"{group} {name!r} makes {type(part).__name__}, which is no {kind.__name__}"
        raise CragError(message)
    return part


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value
