"""`crag train`: train an evaluator with its card from labelled pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crag.charts import require_matplotlib
from crag.cli.terminal import print_json
from crag.evaluators import load_evaluator
from crag.models.minilm import WEIGHTS_SHA256
from crag.models.model_card import DataFile, EvaluatorCard, write_card
from crag.papers.training.blending import fit_blend
from crag.papers.training.metrics import quality
from crag.papers.training.models import is_packaged
from crag.papers.training.pairs import LabelRule, Pair, by_question, describe, read_pairs
from crag.papers.training.pictures import training_curves
from crag.papers.training.recipe import Recipe
from crag.papers.training.saving import save
from crag.papers.training.splits import (
    check_apart,
    check_classes,
    check_large_enough,
    held_out,
    without_leaks,
)
from crag.papers.training.trainer import finish, train
from crag.parts import Passage
from crag.runtime.evaluator_calls import scores_of

Leaks = Literal["refuse", "drop", "allow"]
LIMITS = [
    "A score says how well a text fits the question, not whether what the text says is true.",
    "The thresholds belong to this evaluator and to data like those it was calibrated on.",
]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of the command."""

    data: Sequence[Path]
    development: Sequence[Path]
    output: Path
    recipe: Recipe
    labels: LabelRule
    held_out: float
    licence: str | None
    leaks: Leaks
    pictures: Path | None


def run(options: TrainOptions, *, as_json: bool) -> None:
    """Train, save, measure the saved evaluator on every development file, and show the card."""
    console = Console(stderr=True, quiet=as_json)
    if options.pictures:
        require_matplotlib("train")
    read = {path: read_pairs(path, options.labels) for path in options.data}
    pairs = [pair for part in read.values() for pair in part]
    sets = {_name(path, options): read_pairs(path, options.labels) for path in options.development}
    if not sets and options.held_out > 0:
        pairs, sets["held out"] = held_out(pairs, options.held_out, options.recipe.seed)
    development = [pair for part in sets.values() for pair in part]
    if options.leaks == "drop":
        pairs = without_leaks(pairs, development)
    _check(pairs, development, options)
    console.print(f"{len(pairs):,} pairs, {sum(p.positive for p in pairs):,} of them relevant")
    trained_on, kept = held_out(pairs, options.recipe.blend, options.recipe.seed)
    check_classes(trained_on, "the training data")
    if kept:
        check_classes(kept, "the questions set aside for the blend (blend=0 needs none)")
    trained = train(options.recipe, trained_on, development, options.output, quiet=as_json)
    blend = fit_blend(trained.trainee, options.recipe, trained_on, kept) if kept else None
    files = [describe(path, part, options.licence) for path, part in read.items()]
    card = _card(options.recipe, trained.trainee.kind, files)
    save(trained.trainee, blend, options.recipe, options.output, card)
    measured = card.model_copy(update={"metrics": _measured(options.output, sets)})
    write_card(options.output, measured)
    finish(options.output)
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        training_curves(trained.history, options.pictures / "training.png")
    _show(measured, options.output, as_json=as_json)


def _name(path: Path, options: TrainOptions) -> str:
    """Return the card's name of a development file: its path if two have the same name."""
    alike = [other for other in options.development if other.stem == path.stem]
    return path.stem if len(alike) == 1 else path.as_posix()


def _check(pairs: Sequence[Pair], development: Sequence[Pair], options: TrainOptions) -> None:
    check_classes(pairs, "the training data")
    check_large_enough(development, options.recipe.early_stopping)
    if options.leaks == "refuse":
        check_apart(pairs, development)


def _card(recipe: Recipe, kind: str, files: list[DataFile]) -> EvaluatorCard:
    return EvaluatorCard.model_validate(
        {
            "kind": kind,
            "base": recipe.base,
            "base_sha256": WEIGHTS_SHA256 if is_packaged(recipe) else None,
            "max_length": recipe.max_length,
            "data": files,
            "recipe": recipe.model_dump(mode="json"),
            "limits": LIMITS,
        }
    )


def _measured(folder: Path, sets: Mapping[str, Sequence[Pair]]) -> dict[str, dict[str, float]]:
    """Return the quality of the saved evaluator, loaded like a user's."""
    evaluator = load_evaluator(str(folder.resolve()))
    metrics = {}
    for name, pairs in sets.items():
        if not pairs:
            continue
        grouped = by_question(pairs)
        scores = [
            score
            for question, group in grouped.items()
            for score in scores_of(
                evaluator, question, [Passage(pair.title, pair.text) for pair in group]
            )
        ]
        ordered = [pair for group in grouped.values() for pair in group]
        metrics[name] = {key: round(value, 4) for key, value in quality(ordered, scores).items()}
    return metrics


def _show(card: EvaluatorCard, output: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"output": str(output), "card": card.model_dump(mode="json")})
        return
    console = Console()
    table = Table("development set", "AUC", "accuracy at 0", "top-1", box=None)
    for name, metrics in card.metrics.items():
        keys = ("auc", "accuracy", "top1")
        table.add_row(name, *(f"{metrics[k]:.3f}" if k in metrics else "-" for k in keys))
    if card.metrics:
        console.print(table)
    console.print(f"Written to {escape(str(output))}. Next, fit its thresholds:", highlight=False)
    command = f"  crag calibrate DATA --evaluator {output} --write"
    console.print(escape(command), highlight=False, soft_wrap=True)
