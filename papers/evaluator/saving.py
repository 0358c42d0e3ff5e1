"""Write a trained evaluator, whole, as transformers saves it."""

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.errors import TrainingError
from crag.models.model_card import CARD, ModelCard
from crag.papers.evaluator.artefacts import write_card
from crag.papers.evaluator.models import Trainee, merged

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Numbers of the errors of a full disk, a spent quota, and a file beyond the limit of its size."""


@contextmanager
def outside_faults(output: Path) -> Iterator[None]:
    """Raise disk failures as `TrainingError`; what was saved before remains usable.

    Raises:
        TrainingError: something could not be written to `output`.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        # torch raises a RuntimeError where others raise an OSError.
        if isinstance(error, RuntimeError) and "inline_container" not in str(error):
            raise
        first = str(error).strip().partition("\n")[0]
        advice = "Free space and start again: it resumes"
        if isinstance(error, OSError) and error.errno not in _FULL:
            advice = "Make this place writable and start again, or choose another --output"
        message = f"writing to {output} failed: {first}. {advice}"
        raise TrainingError(message) from error


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Make an empty folder for files on their way, and remove it with what is left in it.

    It always has this name, so that the next run removes what a killed one left.
    """
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def save(trainee: Trainee, output: Path, card: ModelCard) -> None:
    """Write model and tokenizer, then the card; files are renamed only when all are complete.

    Raises:
        TrainingError: the disk is full, or `output` cannot be written to.
    """
    model = merged(trainee.model)
    with outside_faults(output):
        with new_folder(output / ".new") as folder:
            model.save_pretrained(folder)
            trainee.tokenizer.save_pretrained(folder)
            _replace(output, sorted(folder.iterdir()))
        write_card(output, card)


def _replace(output: Path, files: Sequence[Path]) -> None:
    """Move files into the evaluator's folder, which has no card until the end."""
    (output / CARD).unlink(missing_ok=True)
    for file in files:
        file.replace(output / file.name)


def encoder_weights(model: Any) -> dict[str, NDArray[np.float32]]:
    """Return the weights under the names that the encoder alone gives them."""
    return {
        name.removeprefix("bert."): tensor.detach().float().cpu().numpy()
        for name, tensor in model.state_dict().items()
    }
