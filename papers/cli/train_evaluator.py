"""`crag train`: train an evaluator with its card from labelled pairs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import assigned, print_json, print_table, safe, say
from crag.papers.cli.command import command, refuse_overwriting
from crag.papers.cli.groups import train
from crag.papers.cli.options import (
    CurvesOption,
    LabelledData,
    LabelsOption,
    LicenceOption,
    RecipeSettings,
    held_out_option,
)
from crag.plain import counted

if TYPE_CHECKING:
    from crag.models.model_card import DataFile, ModelCard
    from crag.papers.evaluator.pairs import Pair
    from crag.papers.evaluator.recipe import Recipe

LIMITS = [
    "A score says how well a text fits the question, not whether what the text says is true.",
    "The thresholds belong to this evaluator and to data like those it was calibrated on.",
]


@command(
    train,
    "crag train pairs.jsonl --output mine",
    "crag train pairs.jsonl --output mine --dev held-out.jsonl --set epochs=3",
    extra="train",
)
def evaluator(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: LabelledData,
    output: Annotated[
        Path, typer.Option(help="Folder to write the evaluator to.", show_default=False)
    ],
    development: Annotated[
        list[Path] | None, typer.Option("--dev", help="Development data; may be repeated.")
    ] = None,
    share: Annotated[float, held_out_option("questions")] = 0.1,
    preset: Annotated[
        Literal["default", "paper"],
        typer.Option(help="default: as the shipped one; paper: T5-large, as CRAG."),
    ] = "default",
    settings: RecipeSettings = None,
    labels: LabelsOption = "auto",
    licence: LicenceOption = None,
    leaks: Annotated[
        Literal["refuse", "drop", "allow"],
        typer.Option(help="Questions and titles in both training and development data."),
    ] = "refuse",
    pictures: CurvesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train an evaluator on your labelled data; run it again to resume."""
    from crag.papers.evaluator import splits
    from crag.papers.evaluator.artefacts import write_card
    from crag.papers.evaluator.pairs import describe, read_pairs
    from crag.papers.evaluator.pictures import require_drawable, training_curves
    from crag.papers.evaluator.recipe import recipe_from
    from crag.papers.evaluator.saving import save
    from crag.papers.evaluator.trainer import finish
    from crag.papers.evaluator.trainer import train as train_evaluator

    recipe = recipe_from(preset, assigned(settings))
    refuse_overwriting([output], [Path(recipe.base)])
    if pictures:
        require_drawable(pictures)
    read = {path: read_pairs(path, labels) for path in data}
    pairs = [pair for part in read.values() for pair in part]
    held_out = _named({path: read_pairs(path, labels) for path in development or ()})
    if not held_out and share > 0:
        pairs, held_out["held out"] = splits.held_out(pairs, share, recipe.seed)
    unseen = [pair for part in held_out.values() for pair in part]
    if leaks == "drop":
        pairs = splits.without_leaks(pairs, unseen)
    splits.check_classes(pairs, "the training data")
    splits.check_large_enough(unseen, recipe.early_stopping)
    if leaks == "refuse":
        splits.check_apart(pairs, unseen)
    if not as_json:
        relevant = sum(pair.positive for pair in pairs)
        say(f"{counted(len(pairs), 'pair')}, {relevant:,} of them relevant", stderr=True)
    trained = train_evaluator(recipe, pairs, unseen, output, quiet=as_json)
    files = [describe(path, part, licence) for path, part in read.items()]
    card = _card(recipe, trained.trainee.kind, files)
    save(trained.trainee, output, card)
    card = card.model_copy(update={"metrics": _measured(output, held_out)})
    write_card(output, card)
    finish(output)
    if pictures:
        training_curves(trained.history, pictures / "training.png")
    if as_json:
        print_json({"output": str(output), "card": card.model_dump(mode="json")})
    else:
        _show(card, output)


def _named(files: Mapping[Path, list["Pair"]]) -> dict[str, list["Pair"]]:
    """Name development files as the card does: by their paths if two have the same name."""
    stems = [path.stem for path in files]
    return {
        path.stem if stems.count(path.stem) == 1 else path.as_posix(): pairs
        for path, pairs in files.items()
    }


def _card(recipe: "Recipe", kind: str, files: list["DataFile"]) -> "ModelCard":
    from crag.models.model_card import ModelCard

    return ModelCard.model_validate(
        {
            "kind": kind,
            "base": recipe.base,
            "max_length": recipe.max_length,
            "data": files,
            "recipe": recipe.model_dump(mode="json"),
            "limits": LIMITS,
        }
    )


def _measured(folder: Path, sets: Mapping[str, Sequence["Pair"]]) -> dict[str, dict[str, float]]:
    """Return the quality of the saved evaluator, loaded like a user's."""
    from crag.evaluators import load_evaluator
    from crag.papers.evaluator.evidence import measured_quality

    evaluator = load_evaluator(str(folder.resolve()))
    return {name: measured_quality(evaluator, pairs) for name, pairs in sets.items() if pairs}


def _show(card: "ModelCard", output: Path) -> None:
    if card.metrics:
        keys = ("auc", "accuracy", "top1")
        rows = (
            (name, *(f"{metrics[key]:.3f}" if key in metrics else "-" for key in keys))
            for name, metrics in card.metrics.items()
        )
        print_table(rows, "development set", "AUC", "accuracy at 0", "top-1")
    say(f"Written to {safe(output)}. Next, fit its thresholds:")
    say(safe(f"  crag calibrate DATA --evaluator {output} --write"))
