"""Evaluators: judges of how well texts serve a question, behind the Protocol in `crag.parts`."""

import json
from pathlib import Path

from langchain_core.embeddings import Embeddings

from crag.card import read_card
from crag.delta import DELTA
from crag.encoder import packaged_encoder
from crag.errors import EvaluatorError
from crag.evaluators.chat import ChatEvaluator
from crag.evaluators.chat_batch import BatchChatEvaluator
from crag.evaluators.checkpoint import locate
from crag.evaluators.cosine import CosineEvaluator
from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.evaluators.t5 import T5Evaluator
from crag.evaluators.torch_pairs import TorchPairs
from crag.parts import Evaluator

__all__ = [
    "BatchChatEvaluator",
    "ChatEvaluator",
    "CosineEvaluator",
    "CrossEncoderEvaluator",
    "T5Evaluator",
    "load_evaluator",
]

NAMES = ("default", "cosine")


def load_evaluator(name: str = "default", embeddings: Embeddings | None = None) -> Evaluator:
    """Return the evaluator called `name`, or the one in the folder `name`; weights load on use.

    `default` is the cross-encoder that ships with this package. `cosine` is the calibrated cosine
    over the packaged encoder, or over `embeddings` if given (the calibration belongs to
    all-MiniLM-L6-v2). A folder, or an id on the Hugging Face hub, holds what `crag train` wrote, a
    T5 in the official format, or any cross-encoder with one output.

    Raises:
        EvaluatorError: there is none of that name, or the folder holds no evaluator.
    """
    if name == "default":
        return CrossEncoderEvaluator.packaged()
    if name == "cosine":
        return CosineEvaluator.fitted(embeddings or packaged_encoder())
    if "/" not in name and not Path(name).is_dir():
        message = (
            f"no evaluator is called {name!r}; there are: {', '.join(NAMES)}, or give the folder "
            "of one"
        )
        raise EvaluatorError(message)
    return _stored(locate(name, None))


def _stored(folder: Path) -> Evaluator:
    """Return the evaluator in `folder`, by what its files say it is."""
    if (folder / DELTA).is_file():
        return CrossEncoderEvaluator.changed(folder)
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        message = f"{folder} holds no evaluator: config.json cannot be read ({error})"
        raise EvaluatorError(message) from error
    if config.get("model_type") == "t5":
        return T5Evaluator(folder)
    card = read_card(folder)
    length = card.max_length if card else int(config.get("max_position_embeddings") or 512)
    return CrossEncoderEvaluator(TorchPairs(folder, max_length=min(length, 512)), card=card)
