"""Write what the product reads of a trained model: tensors, differences, blends and cards."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.models.lexical import Blend
from crag.models.model_card import CARD, EncoderCard, EvaluatorCard
from crag.models.weights import Weights

STEPS = 127
"""The largest 8-bit integer, which stands for the largest change of a row."""
_SMALL = 4096
"""Tensors with at most this many numbers are stored whole."""


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


def difference(
    base: Mapping[str, NDArray[np.float32]], tuned: Weights, steps: int = STEPS
) -> dict[str, NDArray[Any]]:
    """Return what to store in order to rebuild `tuned` from `base`.

    The difference of a matrix is stored as 8-bit whole numbers with one scale for each row: what
    fine-tuning changes is small, and the rounding error is at most 1/254 of the largest change in
    that row. With fewer `steps` for that change it is coarser, 1/(2 steps), and a wheel compresses
    it to less. Vectors and tensors that the base lacks are stored whole; equal ones not at all.
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
        scale = np.abs(change).max(axis=1, keepdims=True) / steps
        scale[scale == 0] = 1.0
        whole = np.rint(change / scale).clip(-steps, steps)  # Scales near zero are inexact.
        stored[f"{name}.change"] = whole.astype(np.int8)
        stored[f"{name}.scale"] = scale.astype(np.float32)
    return stored


def write_blend(blend: Blend, path: Path) -> None:
    """Write the blend atomically."""
    numbers = np.r_[blend.weights, blend.intercept]
    write_tensors(path, {"rarity": blend.rarity.astype(np.float16), "blend": numbers})


def rarity_of(texts: Iterable[Iterable[int]], vocabulary: int) -> NDArray[np.float32]:
    """Return log((N + 1) / (n + 1)) for each token: N texts, n of which hold it."""
    seen = np.zeros(vocabulary)
    count = 0
    for tokens in texts:
        seen[np.unique(np.fromiter(tokens, dtype=np.int64))] += 1
        count += 1
    return np.log((count + 1) / (seen + 1)).astype(np.float32)


def write_card(folder: Path, card: EvaluatorCard | EncoderCard) -> None:
    """Write the card into `folder` atomically."""
    text = json.dumps(card.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    written = folder / f".{CARD}.new"
    try:
        with written.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        written.replace(folder / CARD)
    finally:
        written.unlink(missing_ok=True)
