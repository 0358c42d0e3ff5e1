"""A fine-tuned model stored as a small difference from an installed base."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

DELTA = "delta.safetensors"
Weights = dict[str, NDArray[np.float32]]
_STEPS = 127
"""The largest 8-bit integer, which stands for the largest change of a row."""
_SMALL = 4096
"""Tensors with at most this many numbers are stored whole."""


def difference(base: Mapping[str, NDArray[np.float32]], tuned: Weights) -> dict[str, NDArray[Any]]:
    """Return what to store in order to rebuild `tuned` from `base`.

    The difference of a matrix is stored as 8-bit whole numbers with one scale for each row: what
    fine-tuning changes is small, and the rounding error is at most 1/254 of the largest change in
    that row. Vectors and tensors that the base lacks are stored whole; equal ones not at all.
    """
    stored: dict[str, NDArray[Any]] = {}
    for name, values in tuned.items():
        known = base.get(name)
        if known is not None and np.array_equal(known, values):
            continue
        if known is None or values.ndim != 2 or values.size <= _SMALL:  # noqa: PLR2004 - a matrix
            stored[f"{name}.whole"] = values
            continue
        change = values - known
        scale = np.abs(change).max(axis=1, keepdims=True) / _STEPS
        scale[scale == 0] = 1.0
        steps = np.rint(change / scale).clip(-_STEPS, _STEPS)  # Scales near zero are inexact.
        stored[f"{name}.change"] = steps.astype(np.int8)
        stored[f"{name}.scale"] = scale.astype(np.float32)
    return stored


def restored(
    base: Mapping[str, NDArray[np.float32]], stored: Mapping[str, NDArray[Any]]
) -> Weights:
    """Return the weights that `difference` was made from, up to its rounding."""
    weights = dict(base)
    for key, values in stored.items():
        name, _, form = key.rpartition(".")
        if form == "whole":
            weights[name] = values.astype(np.float32)
        elif form == "change":
            weights[name] = base[name] + values.astype(np.float32) * stored[f"{name}.scale"]
    return weights
