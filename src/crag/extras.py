"""The optional packages of this distribution: `pip install 'corrective-rag[torch]'` and others."""

from importlib.util import find_spec
from typing import Literal

from crag.errors import MissingPackageError

Extra = Literal[
    "torch", "train", "bench", "ray", "postgres", "office", "openvino", "server", "trial"
]


def require(extra: Extra, purpose: str, *modules: str) -> None:
    """Check that `modules`, which `extra` installs, are there; none of them is imported.

    Raises:
        MissingPackageError: one is missing; the message names `purpose` and the command to run.
    """
    for module in modules:
        if not _is_installed(module):
            raise MissingPackageError(f"corrective-rag[{extra}]", purpose)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # The package that would hold it is missing.
        return False
