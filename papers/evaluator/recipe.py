"""The recipe of an evaluator: every number, and the presets."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from crag.papers.training import TrainingRecipe, valid_recipe

Preset = Literal["default", "paper"]
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The model on the Hugging Face hub from which the packaged ones are tuned."""


class Recipe(TrainingRecipe):
    """The settings of one training run."""

    base: str = MODEL
    """Model to fine-tune: a folder or an id on the Hugging Face hub; any encoder, or a T5."""
    method: Literal["full", "lora"] = "full"
    """Train all weights, or low-rank adapters (LoRA)."""
    lora_rank: int = Field(default=32, ge=1, le=1024)
    """Rank of the adapters; used with `method=lora`."""
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
