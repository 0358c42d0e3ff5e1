"""Train a reader: one pass over question and passage that grades, marks evidence and quotes."""

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from crag.correction.strips import with_title
from crag.errors import CragError
from crag.extras import require
from crag.models.encoder import PACKAGED as ENCODER
from crag.models.lexical import FEATURES
from crag.models.model import MODEL
from crag.models.reading_model import GRADE, SIGNALS, ReaderModel
from crag.models.reading_model import PACKAGED as READER
from crag.papers.evaluator.trainer import MODEL as MINILM
from crag.papers.files import outside_faults, replacing
from crag.papers.reader.onnx_export import Weights, layers_of, read_weights, write_reader
from crag.papers.reader.rows import UNKNOWN, ReadingRow, padded, tokenised
from crag.papers.training import TrainingRecipe, Visits, fixed_order, run_training
from crag.parts import Passage
from crag.plain import first_line

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import BertConfig, PreTrainedTokenizerBase

_MAY_CHANGE = frozenset({"steps", "save_steps", "decay", "start_share"})
"""What an interrupted run may go on with another value of."""
_OUTPUTS, _MARKS = ("entity", "answer"), ("evidence", "first", "last")
RIGHT_THING, UNSAID = 0.25, 0.8
"""What a passage about the right thing is worth that does not hold the answer, and one of which
nothing says whether it does."""
_LEAST = 1e-6
SHIPPED = {"encoder": ENCODER, "reader": READER}
"""Names of the models in this package that a run can start from, and their folders."""


class ReaderRecipe(TrainingRecipe):
    """The settings of one run; the defaults are those of the shipped reader."""

    start: str = MINILM
    """Model to start from: a BERT as transformers stores it, a folder or an id on the Hugging Face
    hub; `reader` or `encoder`, as they ship; or the folder that such a training run wrote."""
    warmup_steps: int = Field(default=50, ge=0)
    """Steps in which the learning rate rises."""
    decay: float = Field(default=0.4, ge=0, le=1)
    """Share of the steps, at the end, in which it falls linearly to zero; until then it stays."""
    learning_rate: float = Field(default=1.5e-4, gt=0, le=1)
    batch_size: int = Field(default=16, ge=1, le=4096)
    """Rows in one step."""
    start_share: float = Field(default=0, ge=0, lt=1)
    """Share of the weights it starts from, a reader's, in the result; the rest is what the run
    learned. The mean of both is often better than either (WiSE-FT, arXiv 2109.01903)."""
    frozen_layers: int = Field(default=2, ge=0, le=6)
    """Layers, from the lowest, that stay as they are, and with them the embeddings."""
    max_length: int = Field(default=192, ge=16, le=512)
    """Tokens of question, title and text together in training; the reader reads 512 at most."""
    entity_weight: float = Field(default=0.5, ge=0)
    """Weight of the loss of `entity` against that of `answer`."""
    evidence_weight: float = Field(default=1.0, ge=0)
    """Weight of the loss of the evidence."""
    span_weight: float = Field(default=0.25, ge=0)
    """Weight of the loss of the first token of the answer, and of the last one."""
    steps: int | None = Field(default=None, ge=1)
    """Steps in all; unset, one pass over the rows. A run interrupted before the learning rate began
    to fall may go on with another number: what it did until then is the same."""


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
            CragError: they lack a part of the encoder.
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
            raise CragError(f"the weights to start from lack {lacking[0]!r}")


def weights_of(model: Any) -> Weights:
    """Return the weights of a model under the names that the encoder alone gives them."""
    return {
        name.removeprefix("bert."): tensor.detach().float().cpu().numpy()
        for name, tensor in model.state_dict().items()
    }


def load_base(start: str) -> Base:
    """Load a shipped model by its name, what training wrote into a folder, or any BERT.

    Raises:
        CragError: it is none of these.
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
        raise CragError(message) from error
    if (kind := model.config.model_type) != "bert":
        raise CragError(f"{start!r} is a {kind}; a reader starts from a BERT")
    return Base(weights_of(model), model.config.num_attention_heads, tokenizer)


def train_reader(recipe: ReaderRecipe, rows: Sequence[ReadingRow], output: Path) -> Base:
    """Train by `recipe`, or go on where an interrupted run of the same recipe and rows stopped.

    Raises:
        CragError: the start cannot be loaded, or is no reader and should have a share in the
            result; the loss is not finite, or the disk is full.
        MissingPackageError: accelerate is not installed.
    """
    require("train", "training", "accelerate")
    from transformers import set_seed

    set_seed(recipe.seed)
    start = load_base(recipe.start)
    if recipe.start_share and "marks.weight" not in start.weights:
        message = f"start_share={recipe.start_share} needs a reader to start from"
        raise CragError(message)
    model = reading_model(start, recipe)
    order = _order(rows, recipe)
    steps = recipe.steps or math.ceil(len(order) / recipe.batch_size)
    passes = math.ceil(steps * recipe.batch_size / len(order))
    told = "".join(row.model_dump_json() for row in rows)

    def example(index: int, _: int) -> dict[str, Any]:
        return tokenised(rows[index], start.tokenizer, recipe.max_length)

    run_training(
        recipe, model, Visits(order * passes, example), told, output,
        collator=padded, steps=steps, may_change=_MAY_CHANGE,
        warmup_steps=min(recipe.warmup_steps, steps // 2), lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={
            "num_decay_steps": max(1, round(recipe.decay * steps)), "decay_type": "linear",
        },
    )  # fmt: skip
    weights, share = weights_of(model), recipe.start_share
    if share:
        weights = {
            name: (share * start.weights.get(name, own) + (1 - share) * own).astype(np.float32)
            for name, own in weights.items()
        }
    return start._replace(weights=weights)


def _order(rows: Sequence[ReadingRow], recipe: ReaderRecipe) -> list[int]:
    return fixed_order([len(row.text) for row in rows], recipe.batch_size, recipe.seed)


def unseen(rows: Sequence[ReadingRow], recipe: ReaderRecipe, count: int) -> list[ReadingRow]:
    """Return `count` rows that a run by `recipe` ends before; to fit a grade to.

    Raises:
        CragError: fewer are left; the recipe sees too many `steps`.
    """
    seen = len(rows) if recipe.steps is None else recipe.steps * recipe.batch_size
    left = max(0, len(rows) - seen)
    if left < count:
        most = max(0, len(rows) - count) // recipe.batch_size
        message = (
            f"this run leaves {left} of {len(rows)} rows unseen, and {count} are needed. Set "
            f"steps={most} or less"
        )
        raise CragError(message)
    return [rows[index] for index in _order(rows, recipe)[-count:]]


def save_reader(trained: Base, rows: Sequence[ReadingRow], output: Path) -> NDArray[np.float32]:
    """Write the model in 8 bits with its tokenizer, and the answer's output alone as its grade.

    Returns the inverse document frequency of each token in the texts of `rows`, for the grade.

    Raises:
        CragError: the disk is full, or `output` cannot be written to.
    """
    texts = list(dict.fromkeys(with_title(row.title, row.text) for row in rows))
    encoded = trained.tokenizer(texts, add_special_tokens=False)
    rarity = rarity_of(encoded["input_ids"], len(trained.tokenizer))
    with outside_faults(output):
        output.mkdir(parents=True, exist_ok=True)
        write_reader(trained.weights, trained.heads, output)
        trained.tokenizer.save_pretrained(output)
    plain = np.zeros(len(SIGNALS) + len(FEATURES) + 1)
    plain[SIGNALS.index("answer")] = 1
    save_grade(plain, rarity, output)
    return rarity


def rarity_of(texts: Sequence[Sequence[int]], vocabulary: int) -> NDArray[np.float32]:
    """Return log((N + 1) / (n + 1)) for each token: N texts, n of which hold it."""
    seen = np.zeros(vocabulary)
    for tokens in texts:
        seen[np.unique(np.asarray(tokens, dtype=np.int64))] += 1
    return np.log((len(texts) + 1) / (seen + 1)).astype(np.float32)


def save_grade(grade: NDArray[np.float64], rarity: NDArray[np.float32], output: Path) -> None:
    """Write the grade alone, where the model does not change."""
    from safetensors.numpy import save_file

    with outside_faults(output), replacing(output / GRADE) as written:
        save_file({"blend": grade, "rarity": rarity.astype(np.float16)}, written)


def grade_of(row: ReadingRow) -> float | None:
    """Return what a passage is worth, from 0 to 1; None where the row does not say enough."""
    match row.entity, row.answer:
        case (_, 1):
            return 1.0
        case (1, 0):
            return RIGHT_THING
        case (1, None):
            return UNSAID
        case (0, _) | (None, 0):
            return 0.0
        case _:
            return None


def fit_grade(reader: ReaderModel, rows: Sequence[ReadingRow]) -> NDArray[np.float64]:
    """Return the weights of signals and features, and the intercept, fitted by logistic regression.

    `rows` should not have been trained on: on those its outputs are too good for a fit.

    Raises:
        CragError: all rows are worth the same.
    """
    from sklearn.linear_model import LogisticRegression

    graded = [(row, grade) for row in rows if (grade := grade_of(row)) is not None]
    worth = np.array([grade for _, grade in graded])
    if len(set(worth)) < 2:  # noqa: PLR2004 - a difference
        message = "a grade is fitted to rows of different worth; these are all alike"
        raise CragError(message)
    signals = np.array([_signals(reader, row) for row, _ in graded])
    middle, spread = signals.mean(0), signals.std(0) + _LEAST
    even = (signals - middle) / spread
    model = LogisticRegression(C=1.0, max_iter=5000).fit(
        np.r_[even, even],
        np.r_[np.ones(len(worth)), np.zeros(len(worth))],
        np.r_[worth, 1 - worth],
    )
    weights = model.coef_[0] / spread
    return np.asarray([*weights, model.intercept_[0] - weights @ middle], dtype=np.float64)


def _signals(reader: ReaderModel, row: ReadingRow) -> NDArray[np.float64]:
    """Return the signals of the window that answers best, as a grade sees them."""
    (views,) = reader.views([(row.question, Passage(row.title, row.text))])
    return max((view.signals for view in views), key=lambda signals: float(signals[1]))


def reading_model(start: Base, recipe: ReaderRecipe) -> "nn.Module":
    """Return the encoder with two outputs for a passage and three for each token.

    Raises:
        CragError: the start lacks weights.
    """
    from torch import nn
    from transformers import BertModel

    class ReadingModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel(start.config)
            self.outputs = nn.Linear(start.config.hidden_size, len(_OUTPUTS))
            self.marks = nn.Linear(start.config.hidden_size, len(_MARKS))
            for head in (self.outputs, self.marks):
                nn.init.normal_(head.weight, std=start.config.initializer_range)
                nn.init.zeros_(head.bias)

        def forward(
            self, input_ids: Any, attention_mask: Any, token_type_ids: Any, **labels: Any
        ) -> Any:
            found = self.bert(input_ids, attention_mask, token_type_ids)
            outputs = self.outputs(found.pooler_output).float()
            marks = self.marks(found.last_hidden_state).float()
            if not labels:
                return {"outputs": outputs, "marks": marks}
            return {"loss": _loss(outputs, marks, attention_mask, labels, recipe)}

    model = ReadingModel()
    start.put_into(model)
    for part in (model.bert.embeddings, *model.bert.encoder.layer[: recipe.frozen_layers]):
        part.requires_grad_(requires_grad=False)
    return model


def _loss(
    outputs: "Tensor",
    marks: "Tensor",
    mask: "Tensor",
    labels: Mapping[str, "Tensor"],
    recipe: ReaderRecipe,
) -> "Tensor":
    """Return the weighted sum; each part is a mean over the rows of which it is known."""
    from torch.nn import functional

    def likelihood(logits: "Tensor", name: str) -> "Tensor":
        """Return the loss of each label, 0 of unknown ones."""
        wanted = labels[name].clamp(min=0).float()
        each = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        return each * (labels[name] != UNKNOWN)

    known = (labels["evidence"] != UNKNOWN).sum(1).clamp(min=1)
    loss = recipe.entity_weight * likelihood(outputs[:, 0], "entity").mean()
    loss = loss + likelihood(outputs[:, 1], "answer").mean()
    evidence = (likelihood(marks[:, :, 0], "evidence").sum(1) / known).mean()
    loss = loss + recipe.evidence_weight * evidence
    for index, name in ((1, "first"), (2, "last")):
        logits = marks[:, :, index].masked_fill(mask == 0, -1e4)
        each = functional.cross_entropy(logits, labels[name], ignore_index=UNKNOWN, reduction="sum")
        loss = loss + recipe.span_weight * each / len(mask)
    return loss
