"""Train the sentence encoder on questions and the sections that answer them.

Each question of a batch is to find its own section among all sections of the batch and one rival
of each (contrastive learning with in-batch negatives). The embeddings stay as they are.
"""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from crag.errors import TrainingError
from crag.extras import require
from crag.models.encoder import SentenceEncoder
from crag.models.reading_model import with_question_mark
from crag.papers.loading.records import digest_of, numbered_lines, read_records
from crag.papers.reader.bases import Base, TuningRecipe, load_base, weights_of
from crag.papers.reader.onnx_export import write_encoder
from crag.papers.reader.rows import ReadingRow
from crag.papers.saving import outside_faults
from crag.papers.training import Visits, fixed_order, run_training, steady
from crag.text.markup import without_markup

if TYPE_CHECKING:
    from torch import nn

QUESTION_LENGTH = 64
"""Tokens of a question that are read."""
RIVALS = 2
"""Rivals of a section that one is drawn from."""
FIRST = 5
"""A section counts as found among so many."""
_FEWEST_WORDS = 13
_SPECIAL = 2
"""Tokens that begin and end a text."""


class EncoderRecipe(TuningRecipe):
    """The settings of one run; the defaults are those of a run on a GPU with 80 GB of memory."""

    learning_rate: float = Field(default=1e-4, gt=0, le=1)
    batch_size: int = Field(default=1024, ge=2, le=65536)
    """Questions in one step, each set against the sections of all others; smaller on a CPU."""
    warmup_steps: int = Field(default=30, ge=0)
    decay: float = Field(default=0.7, ge=0, le=1)
    save_steps: int = Field(default=50, ge=1)
    temperature: float = Field(default=0.04, gt=0, le=1)
    """Cosines are divided by it."""
    symmetric_weight: float = Field(default=0.3, ge=0)
    """Weight of the loss by which a section is to find its question, too."""
    max_length: int = Field(default=200, ge=16, le=510)
    """Tokens of a section that are read in training; an index reads 254."""
    held_out: float = Field(default=0.017, ge=0, le=0.5)
    """Share of the sections whose questions measure the encoder and are not learned."""
    steps: int = Field(default=219, ge=1)
    """Steps in all, in as many passes over the questions as they take."""


class EncoderPair(BaseModel):
    """A question, and a text that answers it, as an index embeds it: title // headings // text."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    question: Annotated[str, AfterValidator(with_question_mark)]
    text: str
    rivals: list[str] = []
    """Texts that do not answer it."""


def read_encoder_pairs(path: Path) -> list[EncoderPair]:
    """Read pairs (JSONL: question, text, perhaps rivals), or the rows of `crag train reader-data`.

    Raises:
        DataError: the file cannot be read, or holds something else.
    """
    first = next((line for _, line in numbered_lines(path)), "")
    if '"span_known":' in first:
        return pairs_of(read_records(path, ReadingRow))
    return read_records(path, EncoderPair)


def pairs_of(rows: Sequence[ReadingRow]) -> list[EncoderPair]:
    """Return the rows with a sure answer, each with texts that do not answer the same question."""
    wrong: Mapping[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.answer == 0:
            wrong[row.question].append(_embedded(row))
    return [
        EncoderPair(
            question=row.question, text=_embedded(row), rivals=wrong[row.question][:RIVALS]
        )
        for row in rows
        if row.answer == 1 and row.entity != 0 and len(row.text.split()) >= _FEWEST_WORDS
    ]  # fmt: skip


def _embedded(row: ReadingRow) -> str:
    """Return a passage as an index embeds it."""
    return " // ".join(filter(None, (row.title, without_markup(row.text))))


def split_off(
    pairs: Sequence[EncoderPair], share: float, seed: int
) -> tuple[list[EncoderPair], list[EncoderPair]]:
    """Return the pairs to learn and those held out; all questions of a text are on one side."""
    texts = list(dict.fromkeys(pair.text for pair in pairs))
    draw = random.Random(seed)  # noqa: S311 - a split, no secret
    away = set(draw.sample(texts, round(share * len(texts))))
    kept = [pair for pair in pairs if pair.text not in away]
    return kept, [pair for pair in pairs if pair.text in away]


def train_encoder(
    recipe: EncoderRecipe, pairs: Sequence[EncoderPair], output: Path, *, quiet: bool = False
) -> Base:
    """Train by `recipe`, or go on where an interrupted run of the same recipe and pairs stopped.

    Raises:
        TrainingError: there are fewer than two pairs; the loss is not finite, the disk is full, or
            an interrupted run in `output` had another recipe or other pairs.
        MissingPackageError: accelerate is not installed.
    """
    require("train", "training", "accelerate")
    from transformers import set_seed

    set_seed(recipe.seed)
    size = min(recipe.batch_size, len(pairs))
    if size < 2:  # noqa: PLR2004 - a question is set against another one
        message = f"{len(pairs)} questions are too few to train an encoder on"
        raise TrainingError(message)
    start = load_base(recipe.start)
    model = contrastive_model(start, recipe)
    passes = math.ceil(recipe.steps * size / len(pairs))
    order = fixed_order([0] * len(pairs), size, recipe.seed, passes)

    def example(index: int, place: int) -> tuple[str, str, str | None]:
        pair = pairs[index]
        draw = random.Random(f"{recipe.seed}-{place}")  # noqa: S311 - an example, no secret
        return pair.question, pair.text, draw.choice(pair.rivals) if pair.rivals else None

    run_training(
        recipe, model, Visits(order[: recipe.steps * size], example), digest_of(pairs), output,
        collator=lambda examples: contrasted(examples, start.tokenizer, recipe.max_length),
        steps=recipe.steps, quiet=quiet, per_device_train_batch_size=size,
        **steady(recipe, recipe.steps),
    )  # fmt: skip
    return start._replace(weights=weights_of(model))


def contrasted(
    examples: Sequence[tuple[str, str, str | None]], tokenizer: Any, max_length: int
) -> dict[str, Any]:
    """Return a batch of tensors: all questions, and all sections with the rivals behind them.

    `repeated` is where another place has the text of the question.
    """
    import torch

    questions, own, rivals = zip(*examples, strict=True)
    texts = [*own, *(rival for rival in rivals if rival is not None)]
    numbers = {text: number for number, text in enumerate(texts)}
    at = torch.tensor([numbers[text] for text in texts])
    repeated = at[: len(own), None] == at[None]
    repeated.fill_diagonal_(fill_value=False)
    batch = {"repeated": repeated}
    for name, inputs, most in (
        ("question", list(questions), QUESTION_LENGTH),
        ("text", texts, max_length),
    ):
        encoded = tokenizer(
            inputs, truncation=True, max_length=most + _SPECIAL, padding=True, return_tensors="pt"
        )
        batch[f"{name}_ids"] = encoded["input_ids"]
        batch[f"{name}_mask"] = encoded["attention_mask"]
    return batch


def contrastive_model(start: Base, recipe: EncoderRecipe) -> "nn.Module":
    """Return the encoder with the loss of a batch."""
    import torch
    from torch import nn
    from torch.nn import functional
    from transformers import BertModel

    class ContrastiveModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel(start.config, add_pooling_layer=False)

        def vectors(self, ids: Any, mask: Any) -> Any:
            states = self.bert(ids, mask).last_hidden_state.float() * mask[:, :, None]
            return functional.normalize(states.sum(1) / mask.sum(1, keepdim=True), dim=1)

        def forward(
            self, question_ids: Any, question_mask: Any, text_ids: Any, text_mask: Any,
            repeated: Any,
        ) -> Any:  # fmt: skip
            questions = self.vectors(question_ids, question_mask)
            texts = self.vectors(text_ids, text_mask)
            with torch.autocast(questions.device.type, enabled=False):
                cosines = (questions @ texts.T / recipe.temperature).masked_fill(repeated, -1e4)
            right = torch.arange(len(questions), device=questions.device)
            loss = functional.cross_entropy(cosines, right)
            back = functional.cross_entropy(cosines[:, : len(questions)].T, right)
            return {"loss": loss + recipe.symmetric_weight * back}

    model = ContrastiveModel()
    start.put_into(model)
    model.bert.embeddings.requires_grad_(requires_grad=False)
    return model


def save_encoder(trained: Base, output: Path) -> None:
    """Write the model in 8 bits with its tokenizer.

    Raises:
        TrainingError: the disk is full, or `output` cannot be written to.
    """
    with outside_faults(output):
        output.mkdir(parents=True, exist_ok=True)
        write_encoder(trained.weights, trained.heads, output)
        trained.tokenizer.save_pretrained(output)


def recall(encoder: SentenceEncoder, pairs: Sequence[EncoderPair]) -> float:
    """Return the share of questions that find their text among the first five.

    They look among all texts and rivals of `pairs`.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.text, *pair.rivals)))
    numbers = {text: number for number, text in enumerate(texts)}
    asked = np.array(encoder.embed_documents([pair.question for pair in pairs]))
    cosines = asked @ np.array(encoder.embed_documents(texts)).T
    right = cosines[np.arange(len(pairs)), [numbers[pair.text] for pair in pairs]]
    return round(float(((cosines > right[:, None]).sum(axis=1) < FIRST).mean()), 4)
