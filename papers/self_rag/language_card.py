"""The card of a trained critic or generator: base, data, recipe, metrics."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from crag.papers.loading.records import file_digest
from crag.papers.self_rag.language_base import weight_files
from crag.papers.self_rag.language_recipe import LanguageModelKind, LanguageRecipe


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
    base_sha256: dict[str, str] = {}
    """Digest of each file of the base's weights, if they lie on this machine."""
    data: list[LanguageData] = []
    recipe: dict[str, object] = {}
    """The settings of the training run, seed included."""
    left_out: dict[str, int] = {}
    """Records that were not used, counted by reason."""
    metrics: dict[str, dict[str, float]] = {}
    """By judgement for a critic; `training` has the last loss."""
    confusion: dict[str, dict[str, dict[str, int]]] = {}
    """For a critic: judgement, true label, label given: how many held-out cases."""
    limits: list[str] = []


def language_card(
    kind: LanguageModelKind, recipe: LanguageRecipe, data: Sequence[LanguageData]
) -> LanguageModelCard:
    """Return a card without metrics."""
    return LanguageModelCard(
        kind=kind,
        base=recipe.base,
        base_sha256={file.name: file_digest(file) for file in weight_files(recipe.base)},
        data=list(data),
        recipe=recipe.model_dump(mode="json"),
    )


def describe_data(path: Path, records: int, licence: str | None) -> LanguageData:
    """Return the card's entry for a file."""
    return LanguageData(name=path.name, sha256=file_digest(path), records=records, licence=licence)
