"""What every training shares: its recipe, the order of what it learns, and a run that resumes."""

import hashlib
import logging
import math
import random
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crag.errors import CragError, SettingsError
from crag.papers.files import outside_faults
from crag.plain import first_problem

if TYPE_CHECKING:
    from transformers import Trainer

WORK = ".training"
"""Folder within the output for the checkpoints of an interrupted run."""
LOG_STEPS = 10
"""Steps between two entries of the history."""
_WINDOW = 50
"""Batches within which examples are sorted by length: enough to save padding, and few enough to
keep the order random."""
_SAME_NAMES = {"learning_rate", "weight_decay", "max_grad_norm", "bf16", "seed", "save_steps"}
"""Fields of every recipe that `Trainer` knows by the same name."""


class TrainingRecipe(BaseModel):
    """What the recipes of all trainings share; each has its own defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    learning_rate: float = Field(default=2e-4, gt=0, le=1)
    """The peak learning rate."""
    batch_size: int = Field(default=32, ge=1, le=65536)
    """Examples in one forward pass."""
    weight_decay: float = Field(default=0.01, ge=0, le=1)
    """Weight decay of AdamW."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are clipped to this norm."""
    bf16: bool = False
    """Compute in bfloat16 where it is exact enough."""
    save_steps: int = Field(default=100, ge=1)
    """Steps between two points from which an interrupted run can go on."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Order of what is learned, new weights, and all that is drawn."""


AnyRecipe = TypeVar("AnyRecipe", bound=BaseModel)


def valid_recipe(kind: type[AnyRecipe], values: Mapping[str, object]) -> AnyRecipe:
    """Return a recipe of one kind with these values.

    Raises:
        SettingsError: a name is unknown or a value out of range.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        field, value, problem = first_problem(error)
        if field not in kind.model_fields:
            problem = f"there are: {', '.join(kind.model_fields)}"
        raise SettingsError(field, value, problem) from error


def fixed_order(lengths: Sequence[int], size: int, seed: int, passes: int = 1) -> list[int]:
    """Return the indices of all `passes`, in batches of like length; the same for the same seed.

    The order of the whole run is fixed in advance, so that an interrupted run continues with
    exactly the batches of an uninterrupted one. Each index comes once a pass; what is left over
    when a pass is cut into batches comes at the end of the run.
    """
    order: list[int] = []
    left_over: list[int] = []
    for number in range(passes):
        draw = random.Random(f"{seed}-{number}")  # noqa: S311 - an order, no secret
        shuffled = draw.sample(range(len(lengths)), len(lengths))
        whole = len(shuffled) - len(shuffled) % size
        batches: list[list[int]] = []
        for start in range(0, whole, size * _WINDOW):
            window = shuffled[start : min(whole, start + size * _WINDOW)]
            window.sort(key=lambda index: lengths[index])
            batches += [window[place : place + size] for place in range(0, len(window), size)]
        draw.shuffle(batches)
        order += [index for batch in batches for index in batch]
        left_over += shuffled[whole:]
    return order + left_over


@dataclass(frozen=True)
class Visits:
    """A map-style data set: what `made` returns for each index of `order` and its place in it."""

    order: Sequence[int]
    made: Callable[[int, int], Any]

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, place: int) -> Any:
        return self.made(self.order[place], place)


def run_training(  # noqa: PLR0913 - what a run is
    recipe: TrainingRecipe,
    model: Any,
    visits: Visits,
    data: str,
    output: Path,
    *,
    collator: Any,
    steps: int,
    may_change: frozenset[str] = frozenset({"save_steps"}),
    loss: Any = None,
    **arguments: Any,
) -> "Trainer":
    """Train `model` in place, or go on where an interrupted run of the same kind stopped.

    Checkpoints are kept in ``output/.training`` until `finish` removes them, in a folder for each
    `data`, all of it or a digest, and recipe but for what is in `may_change`. `arguments` are those
    of transformers' `TrainingArguments`.

    Raises:
        CragError: the loss is not finite, or the disk is full.
    """
    import torch
    from transformers import PrinterCallback, Trainer, TrainingArguments

    told = recipe.model_dump_json(exclude=set(may_change)) + data
    work = output / WORK / hashlib.sha256(told.encode()).hexdigest()[:12]
    has_gpu = torch.cuda.is_available()
    # Checkpoints of the same second are ordered by their numbers, which it warns of.
    logging.getLogger("transformers.trainer_utils").setLevel(logging.ERROR)
    options = recipe.model_dump(include=_SAME_NAMES) | {
        "max_steps": steps,
        "per_device_train_batch_size": recipe.batch_size,
        "train_sampling_strategy": "sequential",
        "save_strategy": "steps",
        "save_total_limit": 2,
        "logging_steps": LOG_STEPS,
        "logging_nan_inf_filter": False,  # Do not hide a loss that is not a number.
        "use_cpu": not has_gpu,
        "dataloader_pin_memory": has_gpu,
        "remove_unused_columns": False,
        "report_to": [],
        "disable_tqdm": not sys.stderr.isatty(),
    }
    points = [one.parent for one in work.glob("checkpoint-*/trainer_state.json")]  # Written last.
    last = max(points, key=lambda point: int(point.name.rpartition("-")[2]), default=None)
    with outside_faults(output):
        prepared = TrainingArguments(output_dir=str(work), **(options | arguments))
        trainer = Trainer(
            model=model, args=prepared, train_dataset=visits, data_collator=collator,
            compute_loss_func=loss, callbacks=[_stop_at_nan()],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)  # Standard output is reserved for the command.
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    return trainer


def finish(output: Path) -> None:
    """Remove the checkpoints."""
    shutil.rmtree(output / WORK, ignore_errors=True)


def _stop_at_nan() -> Any:
    """Return a callback of Trainer that raises a CragError at a loss that is not finite."""
    from transformers import TrainerCallback

    class StopAtNan(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            del args, control
            logs = others.get("logs") or {}
            # A run too short to log its loss has the mean at its end.
            loss = logs.get("loss", logs.get("train_loss", 0.0))
            if not math.isfinite(loss):
                told = f"the loss at step {state.global_step} is {loss}"
                raise CragError(f"{told}: choose a lower learning_rate (or bf16=false)")

    return StopAtNan()
