"""`crag train`: evaluators, readers, and the critic and generator of Self-RAG."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import BaseModel

from crag.cli.terminal import assigned, safe, say
from crag.papers.cli.command import (
    CasesArgument,
    DevelopmentOption,
    HeldOutOption,
    LabelledData,
    LabelsOption,
    LeftOutOption,
    ModelFolder,
    PassagesArgument,
    RecipeOption,
    RecipeSettings,
    RowsOption,
    SeedOption,
    command,
    group_of_commands,
)
from crag.plain import counted

if TYPE_CHECKING:
    from crag.models.model_card import DataFile, ModelCard
    from crag.papers.self_rag.language_model import (
        LanguageModel,
        LanguageModelCard,
        LanguageRecipe,
        TokenText,
    )

group = group_of_commands("Train an evaluator, or the critic and generator of Self-RAG.")
READ_LENGTH = 320
"""Tokens of one input when reading: a chunk of our splitter, its headings and the question."""


@command(
    group,
    "crag train pairs.jsonl --output mine",
    "crag train pairs.jsonl --output mine --dev held-out.jsonl --set epochs=3",
    extra="train",
)
def evaluator(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: LabelledData,
    output: ModelFolder,
    development: DevelopmentOption = None,
    share: HeldOutOption = 0.1,
    preset: Annotated[
        Literal["default", "paper"],
        typer.Option(help="default: as the shipped one; paper: T5-large, as CRAG."),
    ] = "default",
    settings: RecipeSettings = None,
    labels: LabelsOption = "auto",
) -> None:
    """Train an evaluator on your labelled data; run it again to resume.

    Questions that the development data ask too, or about whose page they ask, are left out.
    """
    from crag.papers.evaluator import pairs as labelled
    from crag.papers.evaluator.trainer import recipe_from, train
    from crag.papers.files import save_model

    recipe = recipe_from(preset, assigned(settings))
    read = {path: labelled.read_pairs(path, labels) for path in data}
    pairs = [pair for part in read.values() for pair in part]
    held_out = {path.stem: labelled.read_pairs(path, labels) for path in development or ()}
    if held_out:
        unseen = [pair for part in held_out.values() for pair in part]
        pairs = labelled.without_leaks(pairs, unseen)
    else:
        pairs, held_out["held out"] = labelled.held_out(pairs, share, recipe.seed)
    labelled.check_classes(pairs)
    relevant = sum(pair.positive for pair in pairs)
    say(f"{counted(len(pairs), 'pair')}, {relevant:,} of them relevant", stderr=True)
    trainee = train(recipe, pairs, output)
    files = [labelled.describe(path, part) for path, part in read.items()]
    card = _card(trainee.kind, recipe.base, recipe, files, max_length=recipe.max_length)
    save_model(trainee.model, trainee.tokenizer, output, card)
    card = _measured(card, output, {name: part for name, part in held_out.items() if part})
    _finish(card, output, _to_calibrate(output))


@command(group, "crag train critic critic.jsonl --output models/critic", extra="train")
def critic(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: CasesArgument,
    output: ModelFolder,
    development: DevelopmentOption = None,
    share: HeldOutOption = 0.1,
    recipe: RecipeOption = None,
    settings: RecipeSettings = None,
) -> None:
    """Train a critic of Self-RAG on labelled cases; run it again to resume."""
    from crag.errors import CragError
    from crag.papers.files import read_records
    from crag.papers.self_rag.critic import agreement, critic_texts, load_critic
    from crag.papers.self_rag.critique_cases import LabelledCase, held_out
    from crag.papers.self_rag.language_model import language_card, language_recipe, load_base

    chosen = language_recipe("critic", recipe, assigned(settings))
    read = {path: read_records(path, LabelledCase) for path in data}
    cases = [case for part in read.values() for case in part]
    unseen = [case for path in development or () for case in read_records(path, LabelledCase)]
    if not unseen:
        cases, unseen = held_out(cases, share, chosen.seed)
    groups, keys = {case.group for case in unseen} - {""}, {case.key for case in unseen}
    kept = [case for case in cases if case.group not in groups and case.key not in keys]
    if not kept:
        message = "nothing is left to train on: every case is in the development data too"
        raise CragError(message)
    base = load_base(chosen)
    texts, too_long = critic_texts(base.tokenizer, kept, chosen.max_length)
    left_out = {"in the development data": len(cases) - len(kept), "too long": too_long}
    card = language_card("critic", chosen, {path: len(part) for path, part in read.items()})
    card = _train_language(base, chosen, texts, output, card, left_out)
    if unseen:
        found = agreement(unseen, load_critic(output).labels(unseen))
        metrics = {
            kind: {"cases": one.cases, "accuracy": round(one.accuracy, 4)}
            for kind, one in found.items()
        }
        card = card.model_copy(update={"metrics": card.metrics | metrics})
    following = f"Next, make a generator's data:\n  crag reflect-data DATA --critic {output}"
    _finish(card, output, following)


@command(group, "crag train generator records.jsonl --output models/self-rag", extra="train")
def generator(
    data: CasesArgument,
    output: ModelFolder,
    recipe: RecipeOption = None,
    settings: RecipeSettings = None,
) -> None:
    """Train a generator of Self-RAG on critiqued records; run it again to resume."""
    from crag.papers.self_rag.generator_data import read_reflective
    from crag.papers.self_rag.language_model import language_card, language_recipe, load_base
    from crag.papers.self_rag.reflective_text import reflective_texts

    chosen = language_recipe("generator", recipe, assigned(settings))
    read = {path: read_reflective(path) for path in data}
    records = [(one.asked, one.output) for part in read.values() for one in part]
    base = load_base(chosen)
    texts = reflective_texts(base.tokenizer, records, chosen)
    left_out = {"instruction too long": len(records) - len(texts)}
    card = language_card("generator", chosen, {path: len(part) for path, part in read.items()})
    card = _train_language(base, chosen, texts, output, card, left_out)
    following = f"Next, use it:\n  CRAG_REFLECTION={output} crag ask QUESTION --method self-rag"
    _finish(card, output, following)


@command(
    group,
    "crag train reader rows.jsonl --output my-reader",
    "crag train reader rows.jsonl --output my-reader --set start=reader --set start_share=0.5",
    extra="train",
)
def reader(
    data: Annotated[Path, typer.Argument(help="Rows of crag train reader-data (JSONL).")],
    output: ModelFolder,
    development: DevelopmentOption = None,
    graded: Annotated[
        int, typer.Option(min=2, help="Rows kept out of training, to fit the grade to.")
    ] = 1400,
    settings: RecipeSettings = None,
) -> None:
    """Train a reader, the default evaluator, on rows; run it again to resume."""
    from crag.models.model import MODEL, TOKENIZER
    from crag.models.model_card import DataFile
    from crag.models.reading_model import GRADE, ReaderModel
    from crag.papers.evaluator.pairs import read_pairs
    from crag.papers.files import file_digest, read_records, write_card
    from crag.papers.reader import reader as readers
    from crag.papers.reader.rows import ReadingRow
    from crag.papers.training import valid_recipe

    recipe = valid_recipe(readers.ReaderRecipe, assigned(settings))
    rows = read_records(data, ReadingRow)
    if recipe.steps is None:
        steps = max(1, (len(rows) - graded) // recipe.batch_size)
        recipe = recipe.model_copy(update={"steps": steps})
    unseen = readers.unseen(rows, recipe, graded)
    trained = readers.train_reader(recipe, rows, output)
    rarity = readers.save_reader(trained, rows, output)
    grade = readers.fit_grade(ReaderModel(output, READ_LENGTH), unseen)
    readers.save_grade(grade, rarity, output)
    positives = sum(row.answer == 1 for row in rows)
    described = DataFile(
        name=data.name, sha256=file_digest(data), pairs=len(rows), positives=positives
    )
    hashes = {name: file_digest(output / name) for name in (MODEL, TOKENIZER, GRADE)}
    card = _card("reader", recipe.start, recipe, [described], max_length=READ_LENGTH, files=hashes)
    write_card(output, card)
    sets = {path.stem: read_pairs(path) for path in development or ()}
    _finish(_measured(card, output, sets), output, _to_calibrate(output))


@command(
    group,
    "crag train reader-data squad.jsonl nq.jsonl --dev squad_dev.jsonl --output rows.jsonl",
    name="reader-data",
)
def reader_data(
    data: PassagesArgument,
    output: RowsOption,
    development: LeftOutOption = None,
    each: Annotated[int, typer.Option(min=1, help="Most rows of each kind.")] = 9000,
    seed: SeedOption = 0,
) -> None:
    """Make the rows of a reader from questions with their passages."""
    from crag.papers.files import write_records
    from crag.papers.reader.rows import reading_rows
    from crag.papers.self_rag.critique_rules import unleaked

    rows = reading_rows(unleaked(data, development or (), seed)[0], each, seed)
    write_records(output, rows)
    counts = Counter(row.source for row in rows)
    told = ", ".join(f"{source} {count:,}" for source, count in counts.items())
    say(f"{counted(len(rows), 'row')} written to {safe(output)}: {told}")


def _card(
    kind: Any, base: str, recipe: BaseModel, data: list["DataFile"], **others: Any
) -> "ModelCard":
    from crag.models.model_card import ModelCard

    told = recipe.model_dump(mode="json")
    return ModelCard(kind=kind, base=base, data=data, recipe=told, **others)


def _measured(card: "ModelCard", folder: Path, sets: Mapping[str, Any]) -> "ModelCard":
    """Return the card with the quality of the saved evaluator, loaded like a user's."""
    from crag.evaluators import load_evaluator
    from crag.papers.evaluator.evidence import measured_quality

    if not sets:
        return card
    found = load_evaluator(str(folder.resolve()))
    metrics = {name: measured_quality(found, pairs) for name, pairs in sets.items()}
    return card.model_copy(update={"metrics": metrics})


def _train_language(  # noqa: PLR0913, PLR0917 - what a run is
    base: "LanguageModel",
    recipe: "LanguageRecipe",
    texts: "list[TokenText]",
    output: Path,
    card: "LanguageModelCard",
    left_out: Mapping[str, int],
) -> "LanguageModelCard":
    """Train and save with a card, and return the card with the first and the last loss.

    Raises:
        typer.Exit: in processes other than the first, whose part ends with the training.
    """
    from crag.papers.files import save_model
    from crag.papers.self_rag.language_model import train_language_model

    if os.environ.get("RANK", "0") == "0":
        say(counted(len(texts), "record"), stderr=True)
    trained = train_language_model(base, recipe, texts, output)
    if not trained.is_main:
        raise typer.Exit
    losses = [round(entry["loss"], 4) for entry in trained.history if "loss" in entry]
    changes = {
        "left_out": {reason: count for reason, count in left_out.items() if count},
        "metrics": {"training": {"first_loss": losses[0], "last_loss": losses[-1]}},
    }
    card = card.model_copy(update=changes)
    save_model(trained.model, trained.tokenizer, output, card, trained.weights)
    return card


def _to_calibrate(output: Path) -> str:
    return f"Next, fit its thresholds:\n  crag calibrate DATA --evaluator {output} --write"


def _finish(card: Any, output: Path, following: str) -> None:
    """Write the card as it is now, remove the checkpoints, and show what came of the run."""
    from crag.papers.files import outside_faults, write_card
    from crag.papers.training import finish

    with outside_faults(output):
        write_card(output, card)
    finish(output)
    plain = card.model_dump(mode="json")
    for reason, count in plain.get("left_out", {}).items():
        say(f"left out: {count:,} {safe(reason)}")
    for name, metrics in plain["metrics"].items():
        say(f"{safe(name)}: " + ", ".join(f"{key} {value:g}" for key, value in metrics.items()))
    say(f"Written to {safe(output)}. {safe(following)}")
