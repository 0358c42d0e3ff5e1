"""What may be added: extras such as `corrective-rag[torch]`, and parts of the user's own."""

import re
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, Literal, TypeVar

from crag.errors import MissingPackageError, SettingsError

Part = TypeVar("Part")
Extra = Literal["torch", "train", "office", "ocr", "serve", "postgres", "ray"]


def how_to_install(extra: Extra) -> str:
    """Return the command that installs an extra; no package index has it, but a checkout does."""
    return f"Run in a checkout of crag: pip install -c constraints.txt '.[{extra}]'"


def require(extra: Extra, purpose: str, *modules: str) -> None:
    """Check that `modules`, which `extra` installs, are there; none of them is imported.

    Raises:
        MissingPackageError: one is missing; the message names `purpose` and the command to run.
    """
    for module in modules:
        if not _is_installed(module):
            package = f"corrective-rag[{extra}]"
            raise MissingPackageError(package, purpose, how_to_install(extra))


def provider_package(error: ImportError) -> str:
    """Return the package that LangChain asks for in the error of `init_chat_model` and the like."""
    named = re.search(r"pip install [`'\"]?([\w.-]+)", str(error))
    module = error.name or getattr(error.__cause__, "name", None) or "langchain"
    return named[1] if named else module.partition(".")[0].replace("_", "-")


def of_provider(function: str, name: str, kind: str) -> Any:
    """Return what a function of LangChain's, as ``module:function``, makes of ``provider:name``.

    Raises:
        MissingPackageError: the provider needs a package that is missing.
        ValueError: LangChain knows no such provider.
    """
    try:
        return resolve_name(function)(name)
    except ImportError as error:
        raise MissingPackageError(provider_package(error), f"the {kind} {name!r}") from error


def is_attribute(name: str) -> bool:
    """Return whether a name is of the form ``module:attribute``, by which users give own parts."""
    return re.fullmatch(r"[\w.]+:\w+", name) is not None


def attribute_named(name: str, setting: str) -> Any:
    """Import what ``module:attribute`` names, as the value of `setting`.

    Raises:
        SettingsError: it cannot be imported.
    """
    try:
        return resolve_name(name)
    except Exception as error:  # Whatever a module of the user's raises.
        fix = ": is it in this folder? Set PYTHONPATH=." * isinstance(error, ModuleNotFoundError)
        raise SettingsError(setting, name, f"it cannot be imported: {error}{fix}") from error


def part_named(name: str, setting: str, kind: type[Part]) -> Part:
    """Return the part that ``module:attribute`` names: itself, or what it makes when called.

    Raises:
        SettingsError: it cannot be imported or made, or is no such part.
    """
    named = attribute_named(name, setting)
    try:
        part = named if isinstance(named, kind) and not isinstance(named, type) else named()
    except Exception as error:  # Whatever their own code raises.
        raise SettingsError(setting, name, f"it cannot be made: {error}") from error
    if not isinstance(part, kind):
        raise SettingsError(setting, name, f"it must be, or make, a {kind.__name__}")
    return part


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # The package that would hold it is missing.
        return False
