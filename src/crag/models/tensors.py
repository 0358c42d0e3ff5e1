"""Files of tensors: safetensors, never pickles; written whole or not at all."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.errors import EvaluatorError


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read a file of tensors.

    Raises:
        EvaluatorError: it is missing, truncated or no safetensors file.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        message = f"the weights {path} cannot be read ({error}); copy the file again"
        raise EvaluatorError(message) from error


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a file of tensors beside its place, then move it there."""
    from safetensors.numpy import save_file

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    os.close(handle)
    try:
        # It writes memory as it lies, so that a transposed array would come back as another one.
        save_file({name: np.asarray(part, order="C") for name, part in tensors.items()}, temporary)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
