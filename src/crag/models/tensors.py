"""Files of tensors: safetensors, never pickles."""

from pathlib import Path
from typing import Any

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
