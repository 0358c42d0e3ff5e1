"""The recipe of a training run: every number, and the presets."""

from collections.abc import Mapping
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crag.errors import SettingsError
from crag.plain import first_problem

Preset = Literal["default", "paper"]
AnyRecipe = TypeVar("AnyRecipe", bound=BaseModel)
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The model on the Hugging Face hub from which the packaged ones are tuned."""


class Recipe(BaseModel):
    """The settings of one training run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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
    batch_size: int = Field(default=32, ge=1, le=4096)
    """Pairs in one forward pass."""
    accumulation: int = Field(default=1, ge=1, le=4096)
    """Batches per step of the optimiser."""
    learning_rate: float = Field(default=2e-4, gt=0, le=1)
    """The peak learning rate; it decays linearly to zero."""
    warmup: float = Field(default=0.06, ge=0, le=1)
    """Share of the steps for warm-up."""
    weight_decay: float = Field(default=0.01, ge=0, le=1)
    """Weight decay of AdamW."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are clipped to this norm."""
    max_length: int = Field(default=256, ge=8, le=4096)
    """Tokens of question and text together; longer texts are cut."""
    dropout: float | None = Field(default=0.0, ge=0, lt=1)
    """Dropout of all layers. Empty: as in the base."""
    drop_titles: float = Field(default=0.4, ge=0, le=1)
    """Share of the pairs whose title is dropped, drawn again for each epoch, because users' texts
    often have none. Only a title whose words also occur in the text is dropped; 1 drops all."""
    balance: bool = False
    """Weigh both classes equally."""
    bf16: bool = False
    """Compute in bfloat16 where it is exact enough."""
    early_stopping: int = Field(default=0, ge=0)
    """Stop after this many evaluations without improvement on the development set; 0: never."""
    evaluations: int = Field(default=1, ge=0, le=100)
    """Evaluations on the development set in each epoch, for the curves and for early stopping."""
    save_steps: int = Field(default=200, ge=1)
    """Steps between two checkpoints of a run."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed for the order of the pairs, dropped titles, dropout and new weights."""


class TuningRecipe(BaseModel):
    """What the recipes of reader and encoder share, whose result is an 8-bit ONNX file."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    start: str = MODEL
    """Model to start from: a BERT as transformers stores it, a folder or an id on the Hugging Face
    hub; `reader` or `encoder`, as they ship; or the folder that such a training run wrote."""
    learning_rate: float = Field(default=1.5e-4, gt=0, le=1)
    """Kept after the warm-up, until it falls linearly to zero."""
    warmup_steps: int = Field(default=50, ge=0)
    """Steps in which the learning rate rises."""
    decay: float = Field(default=0.4, ge=0, le=1)
    """Share of the steps, at the end, in which it falls."""
    weight_decay: float = Field(default=0.01, ge=0, le=1)
    """Weight decay of AdamW."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are clipped to this norm."""
    bf16: bool = False
    """Compute in bfloat16 where it is exact enough."""
    save_steps: int = Field(default=100, ge=1)
    """Steps between two points from which an interrupted run can go on."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Order of what is learned, and all that is drawn."""


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


def valid_recipe(kind: type[AnyRecipe], values: Mapping[str, object]) -> AnyRecipe:
    """Return a recipe of one kind with these values.

    Raises:
        SettingsError: a name is unknown or a value out of range.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        field, value, problem = first_problem(error)
        if field not in kind.model_fields:
            problem = f"there are: {', '.join(kind.model_fields)}"
        raise SettingsError(field, value, problem) from error


def recipe_from(preset: Preset, changes: Mapping[str, object]) -> Recipe:
    """Return the preset with `changes`.

    Raises:
        SettingsError: a name is unknown or a value out of range.
    """
    recipe = valid_recipe(Recipe, {**PRESETS[preset], **changes})
    if recipe.early_stopping and not recipe.evaluations:
        raise SettingsError("evaluations", 0, "early stopping needs at least one in each epoch")
    return recipe
