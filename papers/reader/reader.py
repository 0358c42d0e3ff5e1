"""Train a reader: one pass over question and passage that grades, marks evidence and quotes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from crag.correction.scoring import with_title
from crag.errors import TrainingError
from crag.models.lexical import FEATURES
from crag.models.model_card import identity_of
from crag.models.reading_model import GRADE, SIGNALS
from crag.papers.evaluator.artefacts import rarity_of, write_tensors
from crag.papers.evaluator.bases import Base, load_base
from crag.papers.evaluator.recipe import TuningRecipe
from crag.papers.evaluator.saving import encoder_weights, outside_faults
from crag.papers.evaluator.trainer import WORK, last_point, steady_arguments, stop_at_nan
from crag.papers.loading.records import digest_of
from crag.papers.reader.asked_questions import AskedRow
from crag.papers.reader.contested_rows import ContestedExamples, batch_of
from crag.papers.reader.onnx_export import Weights, write_reader
from crag.papers.reader.reading_rows import (
    UNKNOWN,
    ReadingExamples,
    ReadingRow,
    in_batches_of_like_length,
    padded,
)
from crag.papers.reader.teacher import TeacherTokens, teaching_model

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedTokenizerBase, Trainer

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
    questions: int = Field(default=2, ge=1, le=4096)
    """Questions with rivals in one step, beside its rows, if there are any."""
    rivals: int = Field(default=5, ge=1, le=64)
    """Rivals of each."""
    rank_weight: float = Field(default=0.5, ge=0)
    """Weight of the loss by which what answers such a question is to be better than its rivals."""
    teacher_steps: int = Field(default=479, ge=1)
    """Steps in which a teacher learns, if there is one."""
    teacher_share: float = Field(default=0.5, gt=0, le=1)
    """Part of the rows and questions of a step that one of a teacher has."""
    teacher_learning_rate: float = Field(default=4e-5, gt=0, le=1)
    """Of the teacher; its warm-up and fall are the reader's."""
    label_weight: float = Field(default=0.4, ge=0)
    """Weight of what the labels say, with a teacher, against what it says."""


class TrainedReader(NamedTuple):
    """A finished run: the weights it led to, and entries of Trainer's log."""

    base: Base
    history: list[dict[str, float]]


def train_reader(  # noqa: PLR0913 - what is learned, and by what
    recipe: ReaderRecipe,
    rows: Sequence[ReadingRow],
    output: Path,
    *,
    asked: Sequence[AskedRow] = (),
    teacher: Path | None = None,
    quiet: bool = False,
) -> TrainedReader:
    """Train by `recipe`, or go on where an interrupted run of the same recipe and rows stopped.

    Of `asked` some questions with their rivals are in each step. `teacher` is a folder of
    transformers: that model learns the same first, and then the reader learns what it says, too.
    Points to go on from are kept in ``output/.training``.

    Raises:
        TrainingError: the start cannot be loaded, or is no reader and should have a share in the
            result; the teacher cannot be used; the loss is not finite, the disk is full, or an
            interrupted run in `output` had another recipe or other rows.
        MissingPackageError: accelerate is not installed.
    """
    from transformers import set_seed

    set_seed(recipe.seed)
    start = load_base(recipe.start)
    if recipe.start_share and "marks.weight" not in start.weights:
        message = f"start_share={recipe.start_share} needs a reader to start from"
        raise TrainingError(message)
    model: Any = reading_model(start, recipe)
    order = in_batches_of_like_length(rows, recipe.batch_size, recipe.seed)
    labelled = ReadingExamples(rows, order, start.tokenizer, recipe.max_length)
    steps = recipe.steps or math.ceil(len(order) / recipe.batch_size)
    work = output / WORK
    tokens = None if teacher is None else TeacherTokens(teacher, start.tokenizer)
    with outside_faults(output):
        last = last_point(work, _identity(recipe, rows, asked, teacher))
        if teacher is not None:
            model.teacher = (_taught(teacher, tokens, recipe, labelled, asked, work, quiet=quiet),)
        trainer = _trainer(model, recipe, steps, labelled, asked, tokens, work, quiet=quiet)
        trainer.train(resume_from_checkpoint=last)
    weights = _averaged(start.weights, encoder_weights(model), recipe.start_share)
    return TrainedReader(start._replace(weights=weights), trainer.state.log_history)


def _taught(  # noqa: PLR0913, PLR0917 - the teacher, and what it learns
    folder: Path,
    tokens: TeacherTokens | None,
    recipe: ReaderRecipe,
    labelled: ReadingExamples,
    asked: Sequence[AskedRow],
    work: Path,
    *,
    quiet: bool,
) -> "nn.Module":
    """Return a teacher that has learned the rows and questions by itself, or goes on to."""
    from torch import nn
    from transformers import set_seed

    class Alone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.teacher = teaching_model(folder, len(_OUTPUTS), len(_MARKS))

        def forward(self, **batch: Any) -> Any:
            outputs, marks = self.teacher(batch)
            return {"loss": _loss(outputs, marks, batch["attention_mask"], batch, recipe)}

    set_seed(recipe.seed)
    model = Alone()
    own = recipe.model_copy(
        update={
            "batch_size": max(1, round(recipe.teacher_share * recipe.batch_size)),
            "questions": max(1, round(recipe.teacher_share * recipe.questions)),
            "learning_rate": recipe.teacher_learning_rate,
        }
    )
    place = work / "teacher"
    last = last_point(place, {"teacher": str(folder)})
    trainer = _trainer(
        model, own, recipe.teacher_steps, labelled, asked, tokens, place, quiet=quiet
    )
    trainer.train(resume_from_checkpoint=last)
    return model.teacher.eval().requires_grad_(requires_grad=False)


def _trainer(  # noqa: PLR0913, PLR0917 - what is trained, on what and how
    model: "nn.Module",
    recipe: ReaderRecipe,
    steps: int,
    labelled: ReadingExamples,
    asked: Sequence[AskedRow],
    tokens: TeacherTokens | None,
    work: Path,
    *,
    quiet: bool,
) -> "Trainer":
    from transformers import PrinterCallback, Trainer

    size = recipe.batch_size
    examples: ReadingExamples | ContestedExamples = labelled
    collated: Callable[..., dict[str, Any]] = padded
    if asked or tokens is not None:
        questions = recipe.questions if asked else 0
        size += questions
        examples = ContestedExamples(
            labelled, asked, questions=questions, rows=recipe.batch_size, rivals=recipe.rivals,
            steps=steps, seed=recipe.seed,
        )  # fmt: skip
        collated = partial(batch_of, teacher=tokens)
    else:
        passes = math.ceil(steps * size / len(labelled))
        examples = replace(labelled, order=list(labelled.order) * passes)
    trainer = Trainer(
        model=model,
        args=steady_arguments(recipe, steps, size, work, quiet=quiet),
        train_dataset=examples,
        data_collator=collated,
        callbacks=[stop_at_nan()],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


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
    """Return the encoder with two outputs for a passage and three for each token.

    Its `teacher`, if it has one, takes part in the loss, and in nothing else.
    """
    import torch
    from torch import nn
    from transformers import BertModel

    class ReadingModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.teacher: tuple[nn.Module, ...] = ()
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
            loss = _loss(outputs, marks, attention_mask, labels, recipe)
            for teacher in self.teacher:
                with torch.no_grad():
                    said = teacher(labels)
                learned = _likeness_loss((outputs, marks), said, attention_mask, labels, recipe)
                loss = learned + recipe.label_weight * loss
            return {"loss": loss}

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
    """Return the weighted sum; each part is a mean over the rows of which it is known.

    Where rows have weights, these hold for the answer and its evidence.
    """
    from torch.nn import functional

    loss = outputs.sum() * 0
    weights = labels.get("weight", mask.new_ones(len(mask)))
    for index, (name, weight) in enumerate(zip(_OUTPUTS, (recipe.entity_weight, 1.0), strict=True)):
        known = labels[name] != UNKNOWN
        each = functional.binary_cross_entropy_with_logits(
            outputs[:, index], labels[name].clamp(min=0).float(), reduction="none"
        )
        each = each * weights if name == "answer" else each
        loss = loss + weight * (each * known).sum() / len(known)
    known = labels["evidence"] != UNKNOWN
    each = functional.binary_cross_entropy_with_logits(
        marks[:, :, 0], labels["evidence"].clamp(min=0).float(), reduction="none"
    )
    of_row = (each * known).sum(1) / known.sum(1).clamp(min=1)
    loss = loss + recipe.evidence_weight * (of_row * weights).mean()
    for index, name in ((1, "first"), (2, "last")):
        logits = marks[:, :, index].masked_fill(mask == 0, -1e4)
        each = functional.cross_entropy(logits, labels[name], ignore_index=UNKNOWN, reduction="sum")
        loss = loss + recipe.span_weight * each / len(mask)
    contested = labels.get("contested", mask.new_zeros((0, 0)))
    if len(contested):
        scores = outputs[:, 1][contested]
        best = scores.new_zeros(len(scores)).long()
        loss = loss + recipe.rank_weight * functional.cross_entropy(scores, best)
    return loss


def _likeness_loss(
    own: "tuple[Tensor, Tensor]",
    taught: "tuple[Tensor, Tensor]",
    mask: "Tensor",
    labels: Mapping[str, "Tensor"],
    recipe: ReaderRecipe,
) -> "Tensor":
    """Return how far outputs and marks are from the teacher's, with the weights of the labels."""
    import torch
    from torch.nn import functional

    (outputs, marks), (outputs_taught, marks_taught) = own, taught

    def unlike(said: "Tensor", wanted: "Tensor") -> "Tensor":
        return functional.binary_cross_entropy_with_logits(said, wanted.sigmoid(), reduction="none")

    def diverging(said: "Tensor", wanted: "Tensor") -> "Tensor":
        logs = functional.log_softmax(said, 1), functional.log_softmax(wanted, 1)
        return functional.kl_div(*logs, log_target=True, reduction="batchmean")

    weights = torch.tensor([recipe.entity_weight, 1.0], device=outputs.device)
    loss = unlike(outputs, outputs_taught).mean(0) @ weights
    text = labels["text"].float()
    each = (unlike(marks[:, :, 0], marks_taught[:, :, 0]) * text).sum(1)
    loss = loss + recipe.evidence_weight * (each / text.sum(1).clamp(min=1)).mean()
    for index in (1, 2):
        said, wanted = (
            one[:, :, index].masked_fill(mask == 0, -1e4) for one in (marks, marks_taught)
        )
        loss = loss + recipe.span_weight * diverging(said, wanted)
    contested = labels["contested"]
    if len(contested):
        answers = outputs[:, 1][contested], outputs_taught[:, 1][contested]
        loss = loss + recipe.rank_weight * diverging(*answers)
    return loss


def _identity(
    recipe: ReaderRecipe,
    rows: Sequence[ReadingRow],
    asked: Sequence[AskedRow],
    teacher: Path | None,
) -> dict[str, object]:
    """Return what must be the same for an interrupted run to go on."""
    same = recipe.model_dump(mode="json", exclude=_MAY_CHANGE)
    identity: dict[str, object] = {"recipe": same, "rows": digest_of(rows)}
    if asked:
        identity["asked"] = digest_of(asked)
    if teacher is not None:
        identity["teacher"] = identity_of(str(teacher))
    return identity


def _averaged(start: Weights, learned: Weights, share: float) -> Weights:
    if not share:
        return learned
    return {
        name: (share * start.get(name, values) + (1 - share) * values).astype(np.float32)
        for name, values in learned.items()
    }
