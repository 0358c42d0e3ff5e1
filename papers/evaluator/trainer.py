"""Train an evaluator: any encoder, or a T5 as in the paper, with one output, on labelled pairs."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from crag.correction.strips import joined, with_title
from crag.errors import CragError
from crag.extras import require
from crag.models.model_card import ModelKind
from crag.papers.evaluator.pairs import Pair
from crag.papers.training import (
    TrainingRecipe,
    Visits,
    fixed_order,
    run_training,
    valid_recipe,
)
from crag.plain import first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Preset = Literal["default", "paper"]
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The model on the Hugging Face hub from which the packaged ones are tuned."""


class Recipe(TrainingRecipe):
    """The settings of one training run."""

    base: str = MODEL
    """Model to fine-tune: a folder or an id on the Hugging Face hub; any encoder, or a T5."""
    freeze_embeddings: bool = True
    """Freeze the embeddings: fewer weights to train."""
    loss: Literal["cross_entropy", "squared"] = "cross_entropy"
    """Binary cross-entropy on labels from 0 to 1, or the squared error on labels from -1 to 1 (as
    in the paper)."""
    epochs: int = Field(default=1, ge=1, le=1000)
    """Number of epochs."""
    accumulation: int = Field(default=1, ge=1, le=4096)
    """Batches per step of the optimiser."""
    warmup: float = Field(default=0.06, ge=0, le=1)
    """Share of the steps for warm-up; then the learning rate decays linearly to zero."""
    max_length: int = Field(default=256, ge=8, le=4096)
    """Tokens of question and text together; longer texts are cut."""
    dropout: float | None = Field(default=0.0, ge=0, lt=1)
    """Dropout of all layers. Empty: as in the base."""
    drop_titles: float = Field(default=0.4, ge=0, le=1)
    """Share of the pairs whose title is dropped, drawn again for each epoch, because users' texts
    often have none. Only a title whose words also occur in the text is dropped; 1 drops all."""
    save_steps: int = Field(default=200, ge=1)


PRESETS: Mapping[Preset, Mapping[str, object]] = {
    "default": {},
    "paper": {
        "base": "t5-large",
        "freeze_embeddings": False,
        "loss": "squared",
        "epochs": 8,
        "batch_size": 12,
        "learning_rate": 1e-4,
        "warmup": 0.0,
        "max_length": 512,
        "dropout": None,
        "drop_titles": 1.0,
    },
}
"""`paper` is the recipe of the official code for PopQA, where passages are scored without title:
AdamW with weight decay 0.01, linear decay without warm-up, gradients clipped to 1.0."""


def recipe_from(preset: Preset, changes: Mapping[str, object]) -> Recipe:
    """Return the preset with `changes`.

    Raises:
        SettingsError: a name is unknown or a value out of range.
    """
    return valid_recipe(Recipe, {**PRESETS[preset], **changes})


_FEWEST_TOKENS = 32
_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout_rate", "dropout")


class Trainee(NamedTuple):
    """A model to train, its tokenizer and the kind of evaluator it becomes."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    kind: ModelKind


def load_trainee(recipe: Recipe) -> Trainee:
    """Load the base with a new head of one output, ready for training with `recipe`.

    Raises:
        CragError: the base cannot be loaded, or does not support one output.
        MissingPackageError: the extra `train` is not installed.
    """
    require("train", "training", "torch", "transformers", "accelerate", "sklearn")
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, set_seed

    place = recipe.base
    set_seed(recipe.seed)  # The head is new and initialised at random.
    try:
        config = AutoConfig.from_pretrained(place, num_labels=1)
        for name in _DROPOUTS if recipe.dropout is not None else ():
            if hasattr(config, name):
                setattr(config, name, recipe.dropout)
        tokenizer = AutoTokenizer.from_pretrained(place)
        if len(tokenizer) - len(tokenizer.all_special_ids) < _FEWEST_TOKENS:
            # Without one, transformers builds a tokenizer with an empty vocabulary.
            raise ValueError("there is no tokenizer")  # noqa: TRY301 - as loading it should
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            place, config=config, use_safetensors=True
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        message = (
            f"the base model {place!r} cannot be loaded: {first_line(error)}. Give a folder with "
            "config.json, *.safetensors and a tokenizer, or an id on the Hugging Face hub"
        )
        raise CragError(message) from error
    most = getattr(config, "max_position_embeddings", None)
    if most is not None and recipe.max_length > most:
        message = f"{place!r} reads at most {most} tokens: set max_length={most} or less"
        raise CragError(message)
    if recipe.freeze_embeddings:
        _freeze_embeddings(model)
    return Trainee(model, tokenizer, "t5" if config.model_type == "t5" else "cross_encoder")


def _freeze_embeddings(model: Any) -> None:
    model.get_input_embeddings().requires_grad_(requires_grad=False)
    others = getattr(getattr(model, model.base_model_prefix), "embeddings", None)
    if others is not None:  # Positions and segments, if the model stores them together.
        others.requires_grad_(requires_grad=False)


def train(recipe: Recipe, pairs: Sequence[Pair], output: Path) -> Trainee:
    """Train with `recipe`, or resume an interrupted run of the same recipe and data.

    Raises:
        CragError: the base cannot be loaded, the loss is not finite, or the disk is full.
        MissingPackageError: the extra `train` is not installed.
    """
    trainee = load_trainee(recipe)
    from transformers import DataCollatorWithPadding

    lengths = [len(pair.text) for pair in pairs]
    order = fixed_order(lengths, recipe.batch_size, recipe.seed, recipe.epochs)
    steps = math.ceil(len(order) / (recipe.batch_size * recipe.accumulation))

    def example(index: int, place: int) -> dict[str, Any]:
        draw = random.Random(f"{recipe.seed}-{place}")  # noqa: S311 - a title, no secret
        return example_of(pairs[index], recipe, trainee, draw)

    run_training(
        recipe, trainee.model, Visits(order, example), json.dumps(list(pairs)), output,
        collator=DataCollatorWithPadding(trainee.tokenizer), steps=steps, loss=_loss(recipe),
        gradient_accumulation_steps=recipe.accumulation,
        warmup_steps=round(recipe.warmup * steps), lr_scheduler_type="linear",
    )  # fmt: skip
    return trainee


def example_of(pair: Pair, recipe: Recipe, trainee: Trainee, draw: random.Random) -> dict[str, Any]:
    """Return a pair as tokens: two segments for an encoder, one text with ``[SEP]`` for a T5."""
    name = pair.title.partition(" (")[0].lower()
    dropped = draw.random() < recipe.drop_titles
    # A title whose words the text does not repeat stays, unless all titles go.
    dropped &= recipe.drop_titles == 1 or name in pair.text.lower()
    text = pair.text if dropped else with_title(pair.title, pair.text)
    # A question that fills the input of an encoder is truncated too; then the text is empty.
    one_text = trainee.kind == "t5"
    texts = [joined(pair.question, text)] if one_text else [pair.question, text]
    tokenizer: Any = trainee.tokenizer
    encoded = tokenizer(*texts, truncation="longest_first", max_length=recipe.max_length)
    label = (pair.label - 0.5) * 2 if recipe.loss == "squared" else pair.label
    return {**encoded, "labels": label}


def _loss(recipe: Recipe) -> Any:
    """Return the loss of a batch, divided by the examples of one step, because Trainer sums."""
    from torch.nn import functional

    each: Any = functional.binary_cross_entropy_with_logits
    if recipe.loss == "squared":
        each = functional.mse_loss

    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        logits = outputs["logits"].reshape(-1).float()
        summed = each(logits, labels.to(logits), reduction="sum")
        return summed / (len(logits) if num_items_in_batch is None else num_items_in_batch)

    return loss
