"""The cards of trained models: base and data of an evaluator or encoder, quality and thresholds."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    model_validator,
)

from crag.errors import EvaluatorError
from crag.plain import first_line, problems

if TYPE_CHECKING:
    from crag.state import Thresholds

CARD = "card.json"
EvaluatorKind = Literal["cross_encoder", "reader", "t5"]


class _CardPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataFile(_CardPart):
    """A file that a model was trained or calibrated on."""

    name: str
    sha256: str
    pairs: int = Field(ge=0)
    positives: int = Field(ge=0)
    """Pairs with a label of at least one half."""
    licence: str | None = None


class Calibration(_CardPart):
    """How the thresholds were fitted, and on which scores."""

    upper: FiniteFloat
    lower: FiniteFloat
    quote: FiniteFloat | None = None
    """For a reader: the score of a quotation from which on it answers."""
    closest: FiniteFloat | None = None
    """For a reader: the score from which on it is shown as one of the closest passages."""
    aim: str
    """The aim of the thresholds, in one sentence."""
    questions: int = Field(ge=1)
    data: list[DataFile]
    quantiles: list[FiniteFloat]
    """The 0th, 5th, 10th … 100th percentile of the scores of all pairs: 21 ascending numbers to
    compare with the distribution of a user's scores."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lower > self.upper:
            message = f"lower {self.lower} is above upper {self.upper}"
            raise ValueError(message)
        return self

    @property
    def thresholds(self) -> "Thresholds":
        """The thresholds that a run uses unless its settings override them."""
        from crag.state import Thresholds  # Loads LangGraph, which no encoder needs.

        return Thresholds(upper=self.upper, lower=self.lower)


class EvaluatorCard(_CardPart):
    """The file ``card.json`` next to the weights of an evaluator."""

    kind: EvaluatorKind
    base: str
    """The model that was fine-tuned: a path or an id on the Hugging Face hub."""
    base_sha256: str | None = None
    """SHA-256 of the base's weights, if the artefact is a delta from them."""
    max_length: int = Field(default=512, ge=8)
    """Tokens of question and text together; longer texts are cut."""
    data: list[DataFile] = []
    recipe: dict[str, object] = {}
    """The settings of the training run, seed included."""
    metrics: dict[str, dict[str, float]] = {}
    """Quality on each development set, by name."""
    calibration: Calibration | None = None
    limits: list[str] = []
    """Known limits of the evaluator."""


class EncoderCard(_CardPart):
    """The file ``card.json`` next to the weights of a sentence encoder."""

    kind: Literal["encoder"]
    name: str
    base: str
    """The model that was fine-tuned: an id on the Hugging Face hub."""
    base_sha256: str
    """SHA-256 of the base's weights, from which the artefact is a delta."""
    data: list[DataFile]
    recipe: dict[str, Any]
    """The settings of the training run, seed included."""
    metrics: dict[str, dict[str, float]]
    """Quality on questions that were held out, by kind."""
    limits: list[str]
    """Known limits of the encoder."""
    files: dict[str, str]
    """SHA-256 of each file beside this one."""


def read_card(folder: Path) -> EvaluatorCard | None:
    """Return the card in `folder`, or None if there is none.

    Raises:
        EvaluatorError: the card cannot be read or is not valid.
    """
    path = folder / CARD
    try:
        return EvaluatorCard.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        problem = first_line(error)
        if isinstance(error, ValidationError):
            problem = problems(error, "the file")
        message = f"the evaluator card {path} cannot be used: {problem}"
        raise EvaluatorError(message) from error


def identity_of(name: str) -> str:
    """Return the name of a model; for a folder, with a digest of what its files say.

    So a model that was trained or calibrated anew in the same folder is another one. JSON counts in
    full, and of other files the size: weights are large, and who trains writes a card.
    """
    folder = Path(name)
    if not name or not folder.is_dir():  # No name would be this folder.
        return name
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            told = path.read_bytes() if path.suffix == ".json" else b"%d" % path.stat().st_size
            digest.update(path.name.encode() + b"\0" + told)
    return f"{name} {digest.hexdigest()[:12]}"
