"""The recipe of a critic or a generator: every number, and recipe files."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from crag.errors import SettingsError
from crag.papers.evaluator.recipe import valid_recipe
from crag.papers.self_rag.language_base import SMOLLM2, NewRows

LanguageModelKind = Literal["critic", "generator"]
Form = Literal["ours", "released"]
"""Of records, labels and prompts: this project's, or to the letter the released programs'."""


class LanguageRecipe(BaseModel):
    """The settings of one run; rates and schedule are the paper's (Self-RAG, Appendix B)."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    base: str = SMOLLM2
    """Causal language model: a folder, an id on the Hugging Face hub, a GGUF file, or smollm2."""
    new_rows: NewRows = "words"
    """How embeddings of the added tokens begin: mean of the token's words, or of all embeddings."""
    method: Literal["full", "lora"] = "full"
    """Train all weights, or low-rank adapters (LoRA) and the embeddings of the added tokens."""
    lora_rank: int = Field(default=32, ge=1, le=1024)
    """Rank of the adapters; used with `method=lora`."""
    form: Form = "ours"
    """A generator's labels and a critic's prompts: ours, or to the letter those of the released
    programs, faults included; a released critic learns its labels as words, not as tokens."""
    wording: Path | None = None
    """Data file of the released critic, whose instructions a critic with `form=released` is
    trained on where its cases bring none."""
    weights: Literal["float32", "bfloat16"] = "float32"
    """Type of the weights that are kept; bfloat16 halves the memory and is for `method=lora`
    alone, whose adapters stay in float32."""
    epochs: int = Field(default=3, ge=1, le=1000)
    """Number of epochs."""
    steps: int | None = Field(default=None, ge=1)
    """Steps in all; empty: all epochs."""
    batch_size: int = Field(default=4, ge=1, le=4096)
    """Records in one forward pass."""
    accumulation: int = Field(default=8, ge=1, le=4096)
    """Batches per step of the optimiser; several processes share them."""
    learning_rate: float = Field(default=2e-5, gt=0, le=1)
    """The peak learning rate."""
    schedule: Literal["linear", "cosine"] = "linear"
    """How the learning rate falls after the warm-up, to zero."""
    warmup: float = Field(default=0.03, ge=0, le=1)
    """Share of the steps for warm-up."""
    weight_decay: float = Field(default=0.0, ge=0, le=1)
    """Weight decay of AdamW."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are clipped to this norm."""
    max_length: int = Field(default=2048, ge=16, le=1_000_000)
    """Tokens of a record; a critic's evidence is cut to it, a generator's record at its end."""
    learn_unsupported: bool = True
    """Of a generator: learn the words of sentences that their IsSup token calls unsupported, as the
    paper does; without it only their tokens are learned."""
    bf16: bool = False
    """Compute in bfloat16 where it is exact enough; the optimiser moves the weights that are kept,
    in float32 (mixed precision)."""
    gradient_checkpointing: bool = False
    """Compute activations twice rather than keep them: less memory, a third more time."""
    save_steps: int = Field(default=100, ge=1)
    """Steps between two points from which an interrupted run goes on."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed for the order of the records, dropout and adapters."""


def language_recipe(
    kind: LanguageModelKind, file: Path | None, changes: Mapping[str, object]
) -> LanguageRecipe:
    """Return the recipe of the table `kind` of a TOML file, if there is one, with `changes`.

    Raises:
        SettingsError: the file cannot be read, has no such table, or a value is out of range.
    """
    recipe = valid_recipe(LanguageRecipe, {**(_table(kind, file) if file else {}), **changes})
    if recipe.method == "full" and recipe.weights == "bfloat16":
        raise SettingsError("weights", recipe.weights, _ROUNDED)
    return recipe


_ROUNDED = (
    "float32 with method=full: bfloat16 has 8 significant bits, so most steps at a small learning "
    "rate are rounded away. Set weights=float32 and bf16=true, or method=lora"
)


def _table(kind: LanguageModelKind, file: Path) -> Mapping[str, object]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise SettingsError("recipe", str(file), f"it cannot be read: {error}") from error
    found = tables.get(kind)
    if not isinstance(found, dict):
        raise SettingsError("recipe", str(file), f"it has no table [{kind}]")
    return found
