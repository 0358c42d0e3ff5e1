"""The recipe of a critic or a generator, and the card of what came of it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from crag.errors import SettingsError
from crag.papers.loading.records import file_digest
from crag.papers.training import TrainingRecipe, valid_recipe

LanguageModelKind = Literal["critic", "generator"]
NewRows = Literal["words", "mean"]
"""How embeddings of new tokens begin: as the mean of the pieces of the token's own words, or as the
mean of all embeddings (the critic of the released code)."""


class LanguageRecipe(TrainingRecipe):
    """The settings of one run; rates and schedule are the paper's (Self-RAG, Appendix B)."""

    base: str = "HuggingFaceTB/SmolLM2-135M-Instruct"
    """Causal language model: a folder, or an id on the Hugging Face hub."""
    new_rows: NewRows = "words"
    """How embeddings of the added tokens begin: mean of the token's words, or of all embeddings."""
    epochs: int = Field(default=3, ge=1, le=1000)
    """Number of epochs."""
    steps: int | None = Field(default=None, ge=1)
    """Steps in all; empty: all epochs."""
    batch_size: int = Field(default=4, ge=1, le=4096)
    """Records in one forward pass."""
    accumulation: int = Field(default=8, ge=1, le=4096)
    """Batches per step of the optimiser; several processes share them."""
    learning_rate: float = Field(default=2e-5, gt=0, le=1)
    schedule: Literal["linear", "cosine"] = "linear"
    """How the learning rate falls after the warm-up, to zero."""
    warmup: float = Field(default=0.03, ge=0, le=1)
    """Share of the steps for warm-up."""
    weight_decay: float = Field(default=0.0, ge=0, le=1)
    max_length: int = Field(default=2048, ge=16, le=1_000_000)
    """Tokens of a record; a critic's evidence is cut to it, a generator's record at its end."""
    learn_unsupported: bool = True
    """Of a generator: learn the words of sentences that their IsSup token calls unsupported, as the
    paper does; without it only their tokens are learned."""
    as_released: bool = False
    """Of a generator: learn the tokens that the released program learns, faults included."""
    gradient_checkpointing: bool = False
    """Compute activations twice rather than keep them: less memory, a third more time."""


def language_recipe(
    kind: LanguageModelKind, file: Path | None, changes: Mapping[str, object]
) -> LanguageRecipe:
    """Return the recipe of the table `kind` of a TOML file, if there is one, with `changes`.

    Raises:
        SettingsError: the file cannot be read, has no such table, or a value is out of range.
    """
    table: Mapping[str, object] = {}
    if file is not None:
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8-sig"))[kind]
        except (OSError, ValueError) as error:
            raise SettingsError("recipe", str(file), f"it cannot be read: {error}") from error
        except KeyError:
            raise SettingsError("recipe", str(file), f"it has no table [{kind}]") from None
    return valid_recipe(LanguageRecipe, {**table, **changes})


class LanguageData(BaseModel):
    """A file that the model was trained on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    sha256: str
    records: int = Field(ge=0)
    licence: str | None = None


class LanguageModelCard(BaseModel):
    """The file ``card.json`` beside the weights."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: LanguageModelKind
    base: str
    data: list[LanguageData] = []
    recipe: dict[str, object] = {}
    """The settings of the training run, seed included."""
    left_out: dict[str, int] = {}
    """Records that were not used, counted by reason."""
    metrics: dict[str, dict[str, float]] = {}
    """By judgement for a critic; `training` has the first and the last loss."""
    limits: list[str] = []


def language_card(
    kind: LanguageModelKind,
    recipe: LanguageRecipe,
    data: Mapping[Path, int],
    licence: str | None = None,
) -> LanguageModelCard:
    """Return a card without metrics; `data` are the files with the number of their records."""
    return LanguageModelCard(
        kind=kind,
        base=recipe.base,
        data=[
            LanguageData(name=path.name, sha256=file_digest(path), records=count, licence=licence)
            for path, count in data.items()
        ],
        recipe=recipe.model_dump(mode="json"),
    )
