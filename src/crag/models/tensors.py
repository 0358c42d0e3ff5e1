"""Files of tensors: safetensors, never pickles; written atomically."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.errors import EvaluatorError


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read a file of tensors.

    Raises:
        EvaluatorError: it is missing, truncated or not a safetensors file.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        message = f"the weights {path} cannot be read ({error}); copy the file again"
        raise EvaluatorError(message) from error


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write a temporary file of tensors, then move it into place."""
    from safetensors.numpy import save_file

    written = path.with_name(f".{path.name}.new")
    try:
        # It writes raw memory, so a transposed array would be read back as another one.
        save_file({name: np.asarray(part, order="C") for name, part in tensors.items()}, written)
        written.chmod(0o644)  # The library lets the owner alone read it.
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
