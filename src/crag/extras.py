"""The optional packages of this distribution, such as `corrective-rag[torch]`."""

import re
from importlib.util import find_spec
from typing import Literal

from crag.errors import MissingPackageError

Extra = Literal[
    "torch", "train", "bench", "ray", "postgres", "ocr", "office", "qdrant", "community",
    "evaluator", "ray-serve", "serve", "telemetry",
]  # fmt: skip


def how_to_install(extra: Extra) -> str:
    """Return the command that installs an extra; no package index has it, but a checkout does."""
    return f"Run in a checkout of crag: pip install -c constraints.txt '.[{extra}]'"


def missing(extra: Extra, purpose: str) -> MissingPackageError:
    """Return the error that says how to install the extra that `purpose` needs."""
    return MissingPackageError(f"corrective-rag[{extra}]", purpose, how_to_install(extra))


def require(extra: Extra, purpose: str, *modules: str) -> None:
    """Check that `modules`, which `extra` installs, are there; none of them is imported.

    Raises:
        MissingPackageError: one is missing; the message names `purpose` and the command to run.
    """
    for module in modules:
        if not _is_installed(module):
            raise missing(extra, purpose)


def provider_package(error: ImportError) -> str:
    """Return the package that LangChain asks for in the error of `init_chat_model` and the like."""
    named = re.search(r"pip install [`'\"]?([\w.-]+)", str(error))
    module = error.name or getattr(error.__cause__, "name", None) or "langchain"
    return named[1] if named else module.partition(".")[0].replace("_", "-")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # The package that would hold it is missing.
        return False
