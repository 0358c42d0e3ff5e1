"""Write what training makes: whole files or none, models as transformers saves them, and cards."""

import errno
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from crag.errors import TrainingError
from crag.models.model_card import CARD
from crag.plain import first_line

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
        advice = "Free space and start again: it resumes"
        if isinstance(error, OSError) and error.errno not in _FULL:
            advice = "Make this place writable and start again, or choose another --output"
        message = f"writing to {output} failed: {first_line(error)}. {advice}"
        raise TrainingError(message) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the place of `path` if the block ends well.

    It always has the same name, so that the next run replaces what a killed one left.
    """
    written = path.with_name(f".{path.stem}.new{path.suffix}")
    try:
        yield written
        written.chmod(0o644)  # Some libraries let the owner alone read what they write.
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def save_model(
    model: Any,
    tokenizer: Any,
    output: Path,
    card: BaseModel,
    weights: Mapping[str, Any] | None = None,
) -> None:
    """Write model and tokenizer, then the card; files are renamed only when all are complete.

    `weights` are the whole ones of a model of which each process holds a shard.

    Raises:
        TrainingError: the disk is full, or `output` cannot be written to.
    """
    folder = output / ".new"
    with outside_faults(output):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            model.save_pretrained(folder, state_dict=weights)
            tokenizer.save_pretrained(folder)
            for old in [output / CARD, *output.glob("*.safetensors*")]:
                old.unlink(missing_ok=True)
            for file in sorted(folder.iterdir()):
                file.replace(output / file.name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        write_card(output, card)


def write_card(folder: Path, card: BaseModel) -> None:
    """Write the card into `folder` atomically."""
    text = json.dumps(card.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    with replacing(folder / CARD) as written:
        written.write_text(text, encoding="utf-8")
