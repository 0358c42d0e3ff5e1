"""The card of a trained model: base and data, quality, thresholds, and the hashes of its files."""

from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from crag.errors import EvaluatorError
from crag.plain import problem_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from crag.state import Thresholds

CARD = "card.json"
ModelKind = Literal["encoder", "reader", "cross_encoder", "t5"]


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
    """How thresholds were fitted, and on which scores."""

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


class ModelCard(_CardPart):
    """The file ``card.json`` next to the weights of a sentence encoder or an evaluator."""

    kind: ModelKind
    base: str
    """The model that was fine-tuned: a path or an id on the Hugging Face hub."""
    max_length: int = Field(default=512, ge=8)
    """Tokens of an evaluator's input, question and text together; longer texts are cut."""
    data: list[DataFile] = []
    recipe: dict[str, object] = {}
    """The settings of the training run, seed included."""
    metrics: dict[str, dict[str, float]] = {}
    """Quality on each set that was held out, by name."""
    calibration: Calibration | None = None
    limits: list[str] = []
    """Known limits of the model."""
    files: dict[str, str] = {}
    """SHA-256 of each file beside the card, if they are checked."""


def read_card(folder: "Traversable") -> ModelCard | None:
    """Return the card in `folder`, or None if there is none.

    Raises:
        EvaluatorError: the card cannot be read or is not valid.
    """
    path = folder.joinpath(CARD)
    try:
        return ModelCard.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        problem = problem_of(error, "the file")
        raise EvaluatorError(f"the evaluator card {path} cannot be used: {problem}") from error
