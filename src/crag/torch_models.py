"""Shared by all models that torch computes: their device, loading, and batches."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.plain import first_line

if TYPE_CHECKING:
    import torch


def best_device() -> "torch.device":
    """Return the first CUDA device that CUDA_VISIBLE_DEVICES shows, or without any the CPU."""
    import torch

    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def load_pretrained(
    kind: str, place: str | Path, refused: Callable[[str], Exception], **options: Any
) -> tuple[Any, Any]:
    """Return tokenizer and model of a folder or of the hub, by a class of transformers.

    Every weight comes from there. Raises the error that `refused` builds from what is wrong;
    transformers itself shows neither progress nor reports meanwhile.
    """
    from pickle import UnpicklingError

    import transformers
    from safetensors import SafetensorError
    from transformers.utils import logging as loading

    shown, verbosity = loading.is_progress_bar_enabled(), loading.get_verbosity()
    loading.disable_progress_bar()  # type: ignore[no-untyped-call]
    loading.set_verbosity(logging.CRITICAL)
    only_here = {"local_files_only": isinstance(place, Path)}
    try:
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(place, **only_here)
        model, report = getattr(transformers, kind).from_pretrained(
            place, output_loading_info=True, weights_only=True, **only_here, **options
        )
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, EOFError, UnpicklingError,
            SafetensorError) as error:  # fmt: skip
        problem = "it cannot be loaded. Copy it again, whole, with its tokenizer; weights in a .bin"
        problem += " that hold more than tensors could run code: store them by save_pretrained"
        raise refused(f"{problem} ({first_line(error)})") from error
    finally:
        loading.set_verbosity(verbosity)
        if shown:
            loading.enable_progress_bar()  # type: ignore[no-untyped-call]
    if lacking := report["missing_keys"]:
        problem = f"it lacks {len(lacking)} weights, such as {min(lacking)}"
        raise refused(f"{problem}. Copy it again, or take one that was trained for this")
    return tokenizer, model


def length_sorted_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return the indices of `lengths` in batches of at most `size`, longest first.

    Equal lengths keep their order. The first batch is the largest, so a lack of memory shows right
    away.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[start : start + size] for start in range(0, len(order), size)]
