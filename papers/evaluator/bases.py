"""What reader and encoder are trained from: weights of a BERT with its tokenizer."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crag.errors import TrainingError
from crag.models.encoder import PACKAGED as ENCODER
from crag.models.model import MODEL
from crag.models.reading_model import PACKAGED as READER
from crag.papers.evaluator.saving import encoder_weights
from crag.papers.reader.onnx_export import Weights, layers_of, read_weights
from crag.plain import first_line

if TYPE_CHECKING:
    from transformers import BertConfig, PreTrainedTokenizerBase

SHIPPED = {"encoder": ENCODER, "reader": READER}
"""Names of the models in this package that a run can start from, and their folders."""


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
        model = AutoModel.from_pretrained(place, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        message = f"{start!r} cannot be loaded to start from: {first_line(error)}"
        raise TrainingError(message) from error
    if model.config.model_type != "bert":
        kind = model.config.model_type
        raise TrainingError(f"{start!r} is a {kind}; readers and encoders start from a BERT")
    return Base(encoder_weights(model), model.config.num_attention_heads, tokenizer)
