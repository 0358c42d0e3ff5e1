"""A fine-tuned model stored as a small difference from an installed base."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

DELTA = "delta.safetensors"
Weights = dict[str, NDArray[np.float32]]


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
