"""Fine-tune a causal language model with transformers' Trainer, resumably."""

import hashlib
import json
import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crag.errors import TrainingError
from crag.papers.evaluator.batches import like_length_order
from crag.papers.evaluator.saving import outside_faults
from crag.papers.evaluator.trainer import (
    LOG_STEPS,
    WORK,
    last_point,
    stop_at_nan,
    training_arguments,
)
from crag.papers.self_rag.language_base import (
    LanguageModel,
    load_language_model,
    with_adapters,
)
from crag.papers.self_rag.language_recipe import LanguageRecipe
from crag.reflection_tokens import TOKENS

if TYPE_CHECKING:
    from transformers import TrainingArguments

IGNORED = -100
"""The label of a token that takes no part in the loss."""


class TokenText(NamedTuple):
    """One record as tokens; `labels` are the tokens themselves where they are learned."""

    ids: NDArray[np.int32]
    labels: NDArray[np.int32]


def token_text(ids: Sequence[int], learned: Sequence[bool]) -> TokenText:
    """Return the tokens with `IGNORED` as the label of those that are not learned."""
    tokens = np.asarray(ids, dtype=np.int32)
    return TokenText(tokens, np.where(np.asarray(learned, dtype=bool), tokens, IGNORED))


@dataclass(frozen=True)
class TrainedLanguageModel:
    """A finished run: the model, perhaps with adapters, and entries of Trainer's log."""

    model: Any
    tokenizer: Any
    history: list[dict[str, float]]
    is_main: bool = True
    """Whether this process is the one that saves; others have done their part."""
    weights: dict[str, Any] | None = None
    """The whole weights where `model` holds a shard of each (FSDP, DeepSpeed)."""


def load_base(recipe: LanguageRecipe, *, tokens: Sequence[str] = TOKENS) -> LanguageModel:
    """Load the base of a recipe with the reflection tokens.

    Raises:
        TrainingError: it cannot be loaded, or reads fewer tokens than `max_length`.
        MissingPackageError: a package is not installed.
    """
    from transformers import set_seed

    set_seed(recipe.seed)
    base = load_language_model(
        recipe.base, weights=recipe.weights, new_rows=recipe.new_rows, tokens=tokens
    )
    most = getattr(base.model.config.get_text_config(), "max_position_embeddings", None)
    if most is not None and recipe.max_length > most:
        message = f"{recipe.base!r} reads at most {most} tokens: set max_length={most} or less"
        raise TrainingError(message)
    return base


def train_language_model(
    base: LanguageModel,
    recipe: LanguageRecipe,
    texts: Sequence[TokenText],
    output: Path,
    *,
    quiet: bool = False,
) -> TrainedLanguageModel:
    """Minimise next-token loss on what is learned, or resume a run of the same recipe and texts.

    The seed fixes the batches of all epochs in advance, so a resumed run sees exactly the remaining
    ones. Points to go on from are kept in ``output/.training``. Processes that `accelerate launch`
    started share the batches of each step, and with FSDP or DeepSpeed also the weights.

    Raises:
        TrainingError: there is nothing to learn, the loss is not finite, the disk is full, the
            processes cannot share a step, or an interrupted run in `output` had another recipe or
            other texts.
    """
    from transformers import DataCollatorForSeq2Seq, PrinterCallback, Trainer

    if not any((text.labels != IGNORED).any() for text in texts):
        message = "no record has a token to learn: raise max_length, or check the data"
        raise TrainingError(message)
    model = with_adapters(base, recipe.lora_rank) if recipe.method == "lora" else base.model
    if recipe.gradient_checkpointing:
        _checkpoint_activations(base.model)
    order = training_order([len(text.ids) for text in texts], recipe)
    work = output / WORK
    with outside_faults(output):
        arguments = _arguments(recipe, len(order), work, quiet=quiet)
        with arguments.main_process_first(local=False):
            last = last_point(work, _identity(recipe, texts))
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=_Visits(texts, order),
            data_collator=DataCollatorForSeq2Seq(base.tokenizer, label_pad_token_id=IGNORED),
            callbacks=[stop_at_nan()],
        )
        trainer.remove_callback(PrinterCallback)  # Standard output is reserved for the command.
        is_sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
        if is_sharded and recipe.method == "lora":
            raise TrainingError("adapters cannot be merged into shards: train LoRA without FSDP")
        trainer.train(resume_from_checkpoint=last)
        weights = trainer.accelerator.get_state_dict(trainer.model_wrapped) if is_sharded else None
    trained = TrainedLanguageModel(
        model, base.tokenizer, trainer.state.log_history, trainer.is_world_process_zero(), weights
    )
    trainer.accelerator.end_training()
    return trained


def _checkpoint_activations(model: Any) -> None:
    # transformers renamed it within version 5, and warns of the older name since.
    renamed = getattr(model, "activation_checkpointing_enable", None)
    (renamed or model.gradient_checkpointing_enable)({"use_reentrant": False})


def training_order(lengths: Sequence[int], recipe: LanguageRecipe) -> list[int]:
    """Return the indices of all visits of a run, in batches of like length.

    Each record is visited once an epoch; those left over when an epoch is cut into batches come at
    the end of the run.
    """
    order: list[int] = []
    left_over: list[int] = []
    for epoch in range(recipe.epochs):
        draw = random.Random(f"{recipe.seed}-{epoch}")  # noqa: S311 - an order, no secret
        batched, rest = like_length_order(lengths, recipe.batch_size, draw)
        order += batched
        left_over += rest
    return order + left_over


@dataclass(frozen=True)
class _Visits:
    """A map-style data set of texts in the order of the run."""

    texts: Sequence[TokenText]
    order: Sequence[int]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        ids, labels = self.texts[self.order[index]]
        return {
            "input_ids": ids.tolist(),
            "attention_mask": [1] * len(ids),
            "labels": labels.tolist(),
        }


def _identity(recipe: LanguageRecipe, texts: Sequence[TokenText]) -> dict[str, object]:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.ids.tobytes() + text.labels.tobytes())
    same = recipe.model_dump(mode="json", exclude={"save_steps"})
    return json.loads(json.dumps({"recipe": same, "texts": digest.hexdigest()}))  # type: ignore[no-any-return]


def _arguments(
    recipe: LanguageRecipe, visits: int, work: Path, *, quiet: bool
) -> "TrainingArguments":
    steps = recipe.steps or math.ceil(visits / (recipe.batch_size * recipe.accumulation))
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if recipe.accumulation % processes:
        message = (
            f"accumulation={recipe.accumulation} batches cannot be shared by {processes} "
            "processes: set a multiple of their number"
        )
        raise TrainingError(message)
    return training_arguments(
        recipe, steps, work,
        per_device_train_batch_size=recipe.batch_size,
        gradient_accumulation_steps=recipe.accumulation // processes,
        warmup_steps=round(recipe.warmup * steps),
        lr_scheduler_type=recipe.schedule,
        logging_steps=min(LOG_STEPS, max(1, steps // 10)),
        disable_tqdm=quiet,
    )  # fmt: skip
