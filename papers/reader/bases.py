"""What reader and encoder are trained from: weights of a BERT with its tokenizer."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from crag.errors import TrainingError
from crag.models.encoder import PACKAGED as ENCODER
from crag.models.model import MODEL
from crag.models.reading_model import PACKAGED as READER
from crag.papers.evaluator.trainer import MODEL as MINILM
from crag.papers.reader.onnx_export import Weights, layers_of, read_weights
from crag.papers.training import TrainingRecipe
from crag.plain import first_line

if TYPE_CHECKING:
    from torch import nn
    from transformers import BertConfig, PreTrainedTokenizerBase

SHIPPED = {"encoder": ENCODER, "reader": READER}
"""Names of the models in this package that a run can start from, and their folders."""


class TuningRecipe(TrainingRecipe):
    """What the recipes of reader and encoder share, whose result is an 8-bit ONNX file."""

    start: str = MINILM
    """Model to start from: a BERT as transformers stores it, a folder or an id on the Hugging Face
    hub; `reader` or `encoder`, as they ship; or the folder that such a training run wrote."""
    warmup_steps: int = Field(default=50, ge=0)
    """Steps in which the learning rate rises."""
    decay: float = Field(default=0.4, ge=0, le=1)
    """Share of the steps, at the end, in which it falls linearly to zero; until then it stays."""


class Base(NamedTuple):
    """Weights by the names of transformers, for so many attention heads, and the tokenizer."""

    weights: Weights
    heads: int
    tokenizer: "PreTrainedTokenizerBase"

    @property
    def config(self) -> "BertConfig":
        """The configuration of a BERT of these weights, without dropout."""
        from transformers import BertConfig

        words, places, sides = (
            self.weights[f"embeddings.{kind}_embeddings.weight"].shape
            for kind in ("word", "position", "token_type")
        )
        return BertConfig(
            vocab_size=words[0],
            hidden_size=words[1],
            num_hidden_layers=layers_of(self.weights),
            num_attention_heads=self.heads,
            intermediate_size=len(self.weights["encoder.layer.0.intermediate.dense.bias"]),
            max_position_embeddings=places[0],
            type_vocab_size=sides[0],
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )

    def put_into(self, model: "nn.Module") -> None:
        """Give a model with a `bert` these weights; parts that they lack stay as they are.

        Raises:
            TrainingError: they lack a part of the encoder.
        """
        import torch

        known = {
            name if name.startswith(("outputs.", "marks.")) else f"bert.{name}": torch.from_numpy(
                np.array(values)
            )
            for name, values in self.weights.items()
        }
        missing = model.load_state_dict(known, strict=False).missing_keys
        if lacking := [one for one in missing if one.startswith(("bert.emb", "bert.enc"))]:
            raise TrainingError(f"the weights to start from lack {lacking[0]!r}")


def weights_of(model: Any) -> Weights:
    """Return the weights of a model under the names that the encoder alone gives them."""
    return {
        name.removeprefix("bert."): tensor.detach().float().cpu().numpy()
        for name, tensor in model.state_dict().items()
    }


def load_base(start: str) -> Base:
    """Load a shipped model by its name, what training wrote into a folder, or any BERT.

    Raises:
        TrainingError: it is none of these.
    """
    from transformers import AutoModel, AutoTokenizer

    place = str(files("crag.models").joinpath(SHIPPED[start])) if start in SHIPPED else start
    try:
        tokenizer = AutoTokenizer.from_pretrained(place)
        if (Path(place) / MODEL).is_file():
            return Base(*read_weights(Path(place)), tokenizer)
        model: Any = AutoModel.from_pretrained(place, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        message = f"{start!r} cannot be loaded to start from: {first_line(error)}"
        raise TrainingError(message) from error
    if (kind := model.config.model_type) != "bert":
        raise TrainingError(f"{start!r} is a {kind}; readers and encoders start from a BERT")
    return Base(weights_of(model), model.config.num_attention_heads, tokenizer)
