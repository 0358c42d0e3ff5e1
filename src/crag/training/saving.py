"""Write a trained evaluator: a small difference from the packaged encoder, or a whole model."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.card import EvaluatorCard, write_card
from crag.delta import DELTA, difference
from crag.lexical import LEXICAL, Blend
from crag.minilm import packaged_weights
from crag.tensors import write_tensors
from crag.training.models import Trainee, is_packaged, merged
from crag.training.recipe import Recipe


def save(
    trainee: Trainee, blend: Blend | None, recipe: Recipe, output: Path, card: EvaluatorCard
) -> None:
    """Write weights, then the card; what is written takes its name only when it is whole.

    Of a model fine-tuned from the packaged encoder the difference is stored (`crag.delta`); of any
    other one the whole model and its tokenizer, as transformers stores them.
    """
    output.mkdir(parents=True, exist_ok=True)
    model = merged(trainee.model)
    if is_packaged(recipe):
        write_tensors(output / DELTA, difference(packaged_weights(), _weights(model)))
    else:
        _write_model(model, trainee.tokenizer, output)
    if blend is not None:
        blend.write(output / LEXICAL)
    write_card(output, card)


def _weights(model: Any) -> dict[str, NDArray[np.float32]]:
    """Return the weights as the packaged encoder names them."""
    return {
        name.removeprefix("bert."): tensor.detach().float().cpu().numpy()
        for name, tensor in model.state_dict().items()
    }


def _write_model(model: Any, tokenizer: Any, output: Path) -> None:
    with tempfile.TemporaryDirectory(dir=output, prefix=".new-") as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        for file in sorted(Path(folder).iterdir()):
            file.replace(output / file.name)
