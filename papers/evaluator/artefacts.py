"""Write what the product reads of a trained model besides its graph: tensors and cards."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.models.model_card import CARD, ModelCard


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


def rarity_of(texts: Iterable[Iterable[int]], vocabulary: int) -> NDArray[np.float32]:
    """Return log((N + 1) / (n + 1)) for each token: N texts, n of which hold it."""
    seen = np.zeros(vocabulary)
    count = 0
    for tokens in texts:
        seen[np.unique(np.fromiter(tokens, dtype=np.int64))] += 1
        count += 1
    return np.log((count + 1) / (seen + 1)).astype(np.float32)


def write_card(folder: Path, card: ModelCard) -> None:
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
