"""One training run with transformers' Trainer, from labelled pairs to weights and a card."""

import hashlib
import json
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from crag.errors import TrainingError
from crag.extras import require
from crag.papers.evaluator.metrics import quality
from crag.papers.evaluator.models import Trainee, load_trainee
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.recipe import Recipe, TuningRecipe
from crag.papers.evaluator.saving import new_folder, outside_faults
from crag.papers.reader.examples import Examples, in_order, visits

if TYPE_CHECKING:
    from transformers import EvalPrediction, Trainer, TrainingArguments

WORK = ".training"
"""Folder within the output for the checkpoints of an interrupted run."""
_RUN, _DONE = "run.json", ".trained"
LOG_STEPS = 10
"""Steps between two entries of the history."""
_SAME_NAMES = {"learning_rate", "weight_decay", "max_grad_norm", "bf16", "seed", "save_steps"}
"""Fields that every recipe has, under Trainer's names."""


@dataclass(frozen=True)
class Trained:
    """A finished run: the model in memory, and the history of loss and metrics."""

    trainee: Trainee
    history: list[dict[str, float]]
    """Entries of Trainer's log: step, and loss or metrics."""


def train(
    recipe: Recipe,
    pairs: Sequence[Pair],
    development: Sequence[Pair],
    output: Path,
    *,
    quiet: bool = False,
) -> Trained:
    """Train with `recipe`, or resume an interrupted run of the same recipe and data.

    Checkpoints are kept in ``output/.training``; `finish` removes them.

    Raises:
        TrainingError: the base cannot be loaded, the loss is not finite, the disk is full, or an
            interrupted run in `output` had another recipe or other data.
        MissingPackageError: the extra `train` is not installed.
    """
    work = output / WORK
    trainee = load_trainee(recipe)
    order = visits(pairs, recipe)
    paired = trainee.kind == "cross_encoder"
    with outside_faults(output):
        seen = [*pairs, *(development if recipe.early_stopping else ())]
        digest = hashlib.sha256(json.dumps(seen).encode()).hexdigest()
        last = last_point(work, {"recipe": recipe.model_dump(mode="json"), "pairs": digest})
        trainer = _trainer(
            trainee,
            Examples(pairs, order, recipe, trainee.tokenizer, paired),
            Examples(development, in_order(development), recipe, trainee.tokenizer, paired),
            _arguments(recipe, len(order), work, evaluates=bool(development), quiet=quiet),
            positives=sum(pair.label for pair in pairs) / len(pairs),
        )
        trainer.train(resume_from_checkpoint=last)
    return Trained(trainee, trainer.state.log_history)


def finish(output: Path) -> None:
    """Remove the checkpoints; all at once, so that none of a run is taken for another's."""
    with suppress(FileNotFoundError), new_folder(output / _DONE) as done:
        (output / WORK).rename(done / WORK)


def training_arguments(
    recipe: BaseModel, steps: int, work: Path, **own: Any
) -> "TrainingArguments":
    """Return Trainer's arguments of any recipe for a run of `steps` that can be resumed.

    All epochs are one pass over a fixed order, so that a resumed run sees exactly the remaining
    batches. `own` are the arguments that not every recipe has, and come before the shared ones.
    """
    import torch
    from transformers import TrainingArguments

    has_gpu = torch.cuda.is_available()
    shared: dict[str, Any] = {
        "max_steps": steps,
        "train_sampling_strategy": "sequential",
        "save_strategy": "steps",
        "save_total_limit": 2,
        "logging_steps": LOG_STEPS,
        "logging_nan_inf_filter": False,  # Do not hide a loss that is not a number.
        "use_cpu": not has_gpu,
        "dataloader_pin_memory": has_gpu,
        "remove_unused_columns": False,
        "report_to": [],
    }
    same = recipe.model_dump(include=_SAME_NAMES)
    # Points within a second of each other are ordered by their numbers, which are those of all.
    logging.getLogger("transformers.trainer_utils").setLevel(logging.ERROR)
    return TrainingArguments(output_dir=str(work), **(shared | same | own))


def steady_arguments(
    recipe: TuningRecipe, steps: int, size: int, work: Path, *, quiet: bool
) -> "TrainingArguments":
    """Return those of a learning rate that rises, stays and falls; `size` is that of a step.

    Raises:
        MissingPackageError: accelerate is not installed.
    """
    require("train", "training", "accelerate")
    return training_arguments(
        recipe, steps, work,
        per_device_train_batch_size=size,
        warmup_steps=min(recipe.warmup_steps, steps // 2),
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={
            "num_decay_steps": max(1, round(recipe.decay * steps)),
            "decay_type": "linear",
        },
        disable_tqdm=quiet,
    )  # fmt: skip


def _arguments(
    recipe: Recipe, visits_: int, work: Path, *, evaluates: bool, quiet: bool
) -> "TrainingArguments":
    steps = math.ceil(visits_ / (recipe.batch_size * recipe.accumulation))
    each = max(1, steps // (recipe.epochs * max(1, recipe.evaluations)))
    stops_early = recipe.early_stopping > 0
    return training_arguments(
        recipe, steps, work,
        per_device_train_batch_size=recipe.batch_size,
        per_device_eval_batch_size=recipe.batch_size,
        gradient_accumulation_steps=recipe.accumulation,
        warmup_steps=round(recipe.warmup * steps),
        lr_scheduler_type="linear",
        eval_strategy="steps" if evaluates and recipe.evaluations else "no",
        eval_steps=each,
        save_steps=each if stops_early else recipe.save_steps,
        load_best_model_at_end=stops_early,
        metric_for_best_model="auc" if stops_early else None,
        disable_tqdm=quiet,
    )  # fmt: skip


def _trainer(
    trainee: Trainee,
    examples: Examples,
    development: Examples,
    arguments: "TrainingArguments",
    *,
    positives: float,
) -> "Trainer":
    from transformers import (
        DataCollatorWithPadding,
        EarlyStoppingCallback,
        PrinterCallback,
        Trainer,
    )

    recipe = examples.recipe
    callbacks: list[Any] = [stop_at_nan()]
    if recipe.early_stopping:
        callbacks.append(EarlyStoppingCallback(recipe.early_stopping))
    trainer = Trainer(
        model=trainee.model,
        args=arguments,
        train_dataset=examples,
        eval_dataset=development if len(development) else None,
        data_collator=DataCollatorWithPadding(trainee.tokenizer),
        compute_loss_func=_loss(recipe, positives),
        compute_metrics=_metrics(development.pairs),
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)  # Standard output is reserved for the command.
    return trainer


def _loss(recipe: Recipe, positives: float) -> Any:
    """Return the loss of a batch; with `balance` both classes weigh one half overall.

    It is divided by the batches of one step, because Trainer sums what they return.
    """
    from torch import Tensor
    from torch.nn import functional

    def loss(outputs: Any, labels: "Tensor", num_items_in_batch: Any = None) -> "Tensor":
        logits = outputs["logits"].reshape(-1).float()
        labels = labels.to(logits)
        if recipe.loss == "squared":
            each, share = functional.mse_loss(logits, labels, reduction="none"), (labels + 1) / 2
        else:
            each = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
            share = labels
        if recipe.balance:
            each = each * (share / positives + (1 - share) / (1 - positives)) / 2
        return each.mean() if num_items_in_batch is None else each.sum() / num_items_in_batch

    return loss


def _metrics(development: Sequence[Pair]) -> Any:
    def metrics(prediction: "EvalPrediction") -> dict[str, float]:
        scores = prediction.predictions
        scores = scores[0] if isinstance(scores, tuple) else scores
        listed = [float(score) for score in scores.reshape(-1)]
        _check_finite(sum(listed), "a score of the development data")
        return quality(development, listed)

    return metrics


def stop_at_nan() -> Any:
    """Return a callback of Trainer that raises a TrainingError at a loss that is not finite."""
    from transformers import TrainerCallback

    class StopAtNan(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            del args, control
            logs = others.get("logs") or {}
            # A run too short to log its loss has the mean at its end.
            loss = logs.get("loss", logs.get("train_loss", 0.0))
            _check_finite(loss, f"the loss at step {state.global_step}")

    return StopAtNan()


def _check_finite(value: float, what: str) -> None:
    if not math.isfinite(value):
        message = f"{what} is {value}: choose a lower learning_rate (or bf16=false)"
        raise TrainingError(message)


def last_point(work: Path, run: Mapping[str, object]) -> str | None:
    """Return the point to go on from, if any, after a check that `run` describes the same run.

    Raises:
        TrainingError: another run was interrupted here.
    """
    record = work / _RUN
    if not record.exists():
        work.mkdir(parents=True, exist_ok=True)
        written = record.with_suffix(".new")
        written.write_text(json.dumps(run, indent=2), encoding="utf-8")
        written.replace(record)
        return None
    if json.loads(record.read_text(encoding="utf-8")) != run:
        message = (
            f"{work} has an interrupted run with another recipe or other data. Continue with "
            "those, choose another --output, or delete that folder"
        )
        raise TrainingError(message)
    whole = [path for path in work.glob("checkpoint-*") if _is_whole(path)]
    newest = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    return str(newest) if newest else None


def _is_whole(point: Path) -> bool:
    """Return whether a checkpoint is complete: Trainer writes its state last."""
    try:
        json.loads((point / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
