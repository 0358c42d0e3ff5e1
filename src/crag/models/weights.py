"""Weights of models: files of safetensors, never pickles, and changes of an installed base."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.errors import EvaluatorError

DELTA = "delta.safetensors"
"""The file of a fine-tuned model that is stored as a small difference from its base."""
Weights = dict[str, NDArray[np.float32]]


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


def restored(
    base: Mapping[str, NDArray[np.float32]], stored: Mapping[str, NDArray[Any]]
) -> Weights:
    """Return the weights that `crag.papers.training.artefacts.difference` had, but for rounding."""
    weights = dict(base)
    for key, values in stored.items():
        name, _, form = key.rpartition(".")
        if form == "whole":
            weights[name] = values.astype(np.float32)
        elif form == "change":
            weights[name] = base[name] + values.astype(np.float32) * stored[f"{name}.scale"]
    return weights


def pooled(weights: Weights, first: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what the pooling layer makes of the states of first positions."""
    return np.tanh(layer(weights, "pooler.dense", first))


def layer(weights: Weights, name: str, states: NDArray[np.float32]) -> NDArray[np.float32]:
    """Apply a layer to states; einsum, unlike `@`, wakes no threads of BLAS.

    They would stay awake for a while and take the cores that the next batch needs.
    """
    product: NDArray[np.float32] = np.einsum("...i,oi->...o", states, weights[f"{name}.weight"])
    return product + weights[f"{name}.bias"]
