"""Train a reader: one pass over question and passage that grades, marks evidence and quotes."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from crag.correction.scoring import with_title
from crag.errors import TrainingError
from crag.models.lexical import FEATURES
from crag.models.reading_model import GRADE, SIGNALS
from crag.papers.evaluator.artefacts import rarity_of, write_tensors
from crag.papers.evaluator.bases import Base, load_base
from crag.papers.evaluator.recipe import TuningRecipe
from crag.papers.evaluator.saving import encoder_weights, outside_faults
from crag.papers.evaluator.trainer import WORK, last_point, steady_arguments, stop_at_nan
from crag.papers.loading.records import digest_of
from crag.papers.reader.onnx_export import Weights, write_reader
from crag.papers.reader.reading_rows import (
    UNKNOWN,
    ReadingExamples,
    ReadingRow,
    in_batches_of_like_length,
    padded,
)

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedTokenizerBase

_MAY_CHANGE = {"steps", "save_steps", "decay", "start_share"}
"""What an interrupted run may go on with another value of."""
_OUTPUTS = ("entity", "answer")
_MARKS = ("evidence", "first", "last")


PLAIN_GRADE = np.array([0.0, 1.0, *([0.0] * (len(SIGNALS) - 2 + len(FEATURES))), 0.0])
"""The answer's output alone, until a grade is fitted."""


class ReaderRecipe(TuningRecipe):
    """The settings of one run; the defaults are those of the shipped reader."""

    start_share: float = Field(default=0, ge=0, lt=1)
    """Share of the weights it starts from, a reader's, in the result; the rest is what the run
    learned. The mean of both is often better than either (WiSE-FT, arXiv 2109.01903)."""
    frozen_layers: int = Field(default=2, ge=0, le=6)
    """Layers, from the lowest, that stay as they are, and with them the embeddings."""
    batch_size: int = Field(default=16, ge=1, le=4096)
    """Rows in one step."""
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


class TrainedReader(NamedTuple):
    """A finished run: the weights it led to, and entries of Trainer's log."""

    base: Base
    history: list[dict[str, float]]


def train_reader(
    recipe: ReaderRecipe, rows: Sequence[ReadingRow], output: Path, *, quiet: bool = False
) -> TrainedReader:
    """Train by `recipe`, or go on where an interrupted run of the same recipe and rows stopped.

    Points to go on from are kept in ``output/.training``.

    Raises:
        TrainingError: the start cannot be loaded, or is no reader and should have a share in the
            result; the loss is not finite, the disk is full, or an interrupted run in `output` had
            another recipe or other rows.
        MissingPackageError: accelerate is not installed.
    """
    from transformers import PrinterCallback, Trainer, set_seed

    set_seed(recipe.seed)
    start = load_base(recipe.start)
    if recipe.start_share and "marks.weight" not in start.weights:
        message = f"start_share={recipe.start_share} needs a reader to start from"
        raise TrainingError(message)
    model: Any = reading_model(start, recipe)
    order = in_batches_of_like_length(rows, recipe.batch_size, recipe.seed)
    steps = recipe.steps or math.ceil(len(order) / recipe.batch_size)
    passes = math.ceil(steps * recipe.batch_size / len(order))
    labelled = ReadingExamples(rows, order * passes, start.tokenizer, recipe.max_length)
    work = output / WORK
    with outside_faults(output):
        same = recipe.model_dump(mode="json", exclude=_MAY_CHANGE)
        last = last_point(work, {"recipe": same, "rows": digest_of(rows)})
        trainer = Trainer(
            model=model,
            args=steady_arguments(recipe, steps, recipe.batch_size, work, quiet=quiet),
            train_dataset=labelled,
            data_collator=padded,
            callbacks=[stop_at_nan()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last)
    weights = _averaged(start.weights, encoder_weights(model), recipe.start_share)
    return TrainedReader(start._replace(weights=weights), trainer.state.log_history)


def unseen(rows: Sequence[ReadingRow], recipe: ReaderRecipe, count: int) -> list[ReadingRow]:
    """Return `count` rows that a run by `recipe` ends before; to fit a grade to.

    Raises:
        TrainingError: fewer are left; the recipe sees too many `steps`.
    """
    order = in_batches_of_like_length(rows, recipe.batch_size, recipe.seed)
    seen = len(order) if recipe.steps is None else recipe.steps * recipe.batch_size
    left = max(0, len(order) - seen)
    if left < count:
        most = max(0, len(order) - count) // recipe.batch_size
        message = (
            f"this run leaves {left} of {len(order)} rows unseen, and {count} are needed. Set "
            f"steps={most} or less"
        )
        raise TrainingError(message)
    return [rows[index] for index in order[-count:]]


def save_reader(
    trained: Base, grade: NDArray[np.float64], rarity: NDArray[np.float32], output: Path
) -> None:
    """Write the model in 8 bits with its tokenizer, and the grade.

    `grade` is what `training.grading.fit_grade` returned, or `PLAIN_GRADE`; `rarity` that of
    each token in the training texts (`rarity_in`).

    Raises:
        TrainingError: the disk is full, or `output` cannot be written to.
    """
    with outside_faults(output):
        output.mkdir(parents=True, exist_ok=True)
        write_reader(trained.weights, trained.heads, output)
        trained.tokenizer.save_pretrained(output)
    save_grade(grade, rarity, output)


def save_grade(grade: NDArray[np.float64], rarity: NDArray[np.float32], output: Path) -> None:
    """Write the grade alone, where the model does not change."""
    with outside_faults(output):
        write_tensors(output / GRADE, {"blend": grade, "rarity": rarity.astype(np.float16)})


def rarity_in(
    rows: Sequence[ReadingRow], tokenizer: "PreTrainedTokenizerBase"
) -> NDArray[np.float32]:
    """Return the inverse document frequency of each token in the texts of `rows`."""
    texts = list(dict.fromkeys(with_title(row.title, row.text) for row in rows))
    encoded = tokenizer(texts, add_special_tokens=False)
    return rarity_of(encoded["input_ids"], len(tokenizer))


def reading_model(start: Base, recipe: ReaderRecipe) -> "nn.Module":
    """Return the encoder with two outputs for a passage and three for each token."""
    import torch
    from torch import nn
    from transformers import BertModel

    class ReadingModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = start.config
            self.bert = BertModel(config)
            self.outputs = nn.Linear(config.hidden_size, len(_OUTPUTS))
            self.marks = nn.Linear(config.hidden_size, len(_MARKS))
            nn.init.normal_(self.outputs.weight, std=config.initializer_range)
            nn.init.normal_(self.marks.weight, std=config.initializer_range)
            nn.init.zeros_(self.outputs.bias)
            nn.init.zeros_(self.marks.bias)

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
    named = {name: torch.from_numpy(np.array(values)) for name, values in start.weights.items()}
    known = {f"bert.{name}": values for name, values in named.items()}
    for name in ("outputs", "marks"):
        for part in ("weight", "bias"):
            if f"{name}.{part}" in named:
                known[f"{name}.{part}"] = named[f"{name}.{part}"]
    missing = model.load_state_dict(known, strict=False).missing_keys
    lacking = [name for name in missing if name.startswith(("bert.embeddings", "bert.encoder"))]
    if lacking:
        message = f"the weights to start from lack {lacking[0]!r}"
        raise TrainingError(message)
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

    loss = outputs.sum() * 0
    for index, (name, weight) in enumerate(zip(_OUTPUTS, (recipe.entity_weight, 1.0), strict=True)):
        known = labels[name] != UNKNOWN
        each = functional.binary_cross_entropy_with_logits(
            outputs[:, index], labels[name].clamp(min=0).float(), reduction="none"
        )
        loss = loss + weight * (each * known).sum() / len(known)
    known = labels["evidence"] != UNKNOWN
    each = functional.binary_cross_entropy_with_logits(
        marks[:, :, 0], labels["evidence"].clamp(min=0).float(), reduction="none"
    )
    of_row = (each * known).sum(1) / known.sum(1).clamp(min=1)
    loss = loss + recipe.evidence_weight * of_row.mean()
    for index, name in ((1, "first"), (2, "last")):
        logits = marks[:, :, index].masked_fill(mask == 0, -1e4)
        each = functional.cross_entropy(logits, labels[name], ignore_index=UNKNOWN, reduction="sum")
        loss = loss + recipe.span_weight * each / len(mask)
    return loss


def _averaged(start: Weights, learned: Weights, share: float) -> Weights:
    if not share:
        return learned
    return {
        name: (share * start.get(name, values) + (1 - share) * values).astype(np.float32)
        for name, values in learned.items()
    }
