"""`crag train critic` and `crag train generator`: fine-tune a model, and write its card."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from crag.charts import require_matplotlib
from crag.cli.terminal import plain_table, print_json, safe
from crag.errors import DataError, TrainingError
from crag.models.model_card import CARD
from crag.papers.training.pictures import training_curves
from crag.papers.training.saving import outside_faults
from crag.papers.training.self_rag.critic import agreement, critic_texts, load_critic
from crag.papers.training.self_rag.critique_cases import LabelledCase
from crag.papers.training.self_rag.generator_data import ReflectiveRecord
from crag.papers.training.self_rag.language_base import LanguageModel, save_language_model
from crag.papers.training.self_rag.language_card import (
    LanguageData,
    LanguageModelCard,
    describe_data,
    language_card,
)
from crag.papers.training.self_rag.language_recipe import LanguageModelKind, LanguageRecipe
from crag.papers.training.self_rag.language_trainer import (
    TokenText,
    load_base,
    train_language_model,
)
from crag.papers.training.self_rag.records import Record, read_records
from crag.papers.training.self_rag.reflective_text import fault_of, reflective_text
from crag.papers.training.trainer import finish

_CRITIC_LIMITS = [
    "It judges by the case alone; what it calls supported need not be true.",
    "Labels made by rule are about questions with short answers; others may be judged worse.",
]
_GENERATOR_LIMITS = [
    "It critiques its own text; a critique is a prediction of the critic's, not the truth.",
    "It is as good as its critic and its passages, which this card does not measure.",
]


@dataclass(frozen=True, kw_only=True)
class LanguageTrainOptions:
    """The options of both commands."""

    data: Sequence[Path]
    development: Sequence[Path]
    output: Path
    recipe: LanguageRecipe
    held_out: float
    licence: str | None
    pictures: Path | None


def train_critic(options: LanguageTrainOptions, *, as_json: bool) -> None:
    """Train a critic, and measure the saved one on cases that it has not seen."""
    cases, files = _read(options, LabelledCase)
    development = [c for path in options.development for c in read_records(path, LabelledCase)]
    if not development:
        cases, development = held_out(cases, options.held_out, options.recipe.seed)
    groups = {case.group for case in development} - {""}
    keys = {case.key for case in development}
    kept = [case for case in cases if case.group not in groups and case.key not in keys]
    if not kept:
        message = "nothing is left to train on: every case is in the development data too"
        raise TrainingError(message)
    base = load_base(options.recipe)
    texts, too_long = critic_texts(base.tokenizer, kept, options.recipe.max_length)
    left_out = {"in the development data": len(cases) - len(kept), "too long": too_long}
    card = language_card("critic", options.recipe, files).model_copy(
        update={"left_out": _counted(left_out), "limits": _CRITIC_LIMITS}
    )
    card = _train(base, texts, options, card, quiet=as_json)
    if development:
        given = load_critic(options.output).labels(development)
        found = agreement(development, given)
        metrics = {
            kind: {"cases": one.cases, "accuracy": round(one.accuracy, 4)}
            for kind, one in found.items()
        }
        card = card.model_copy(
            update={
                "metrics": card.metrics | metrics,
                "confusion": {kind: one.confusion for kind, one in found.items()},
            }
        )
    _finish(card, options, as_json=as_json)


def train_generator(options: LanguageTrainOptions, *, as_json: bool) -> None:
    """Train a generator on checked records; one that is not well-formed is an error.

    Raises:
        DataError: a line is no record, or its tokens are illegal.
    """
    records, files = _read(options, ReflectiveRecord, lambda record: fault_of(record.output))
    base = load_base(options.recipe)
    recipe = options.recipe
    made = [
        reflective_text(
            base.tokenizer, one.instruction, one.output, recipe.max_length,
            learn_unsupported=recipe.learn_unsupported,
        )
        for one in records
    ]  # fmt: skip
    texts = [text for text in made if text is not None]
    left_out = {"instruction too long": len(made) - len(texts)}
    card = language_card("generator", options.recipe, files).model_copy(
        update={"left_out": _counted(left_out), "limits": _GENERATOR_LIMITS}
    )
    card = _train(base, texts, options, card, quiet=as_json)
    _finish(card, options, as_json=as_json)


def held_out(
    cases: Sequence[LabelledCase], share: float, seed: int
) -> tuple[list[LabelledCase], list[LabelledCase]]:
    """Split off a share of the groups, so that no article is on both sides."""
    groups = sorted({case.group for case in cases})
    random.Random(seed).shuffle(groups)  # noqa: S311 - a split, no secret
    chosen = set(groups[: round(len(groups) * share)])
    rest = [case for case in cases if case.group not in chosen]
    return rest, [case for case in cases if case.group in chosen]


def _read(
    options: LanguageTrainOptions, form: type[Record], fault: Callable[[Record], str] = lambda _: ""
) -> tuple[list[Record], list[LanguageData]]:
    if options.pictures:
        require_matplotlib("train")
    records: list[Record] = []
    files: list[LanguageData] = []
    for path in options.data:
        read = read_records(path, form)
        for number, record in enumerate(read, start=1):
            if found := fault(record):
                raise DataError(path, found, number)
        records += read
        files.append(describe_data(path, len(read), options.licence))
    return records, files


def _train(
    base: LanguageModel,
    texts: Sequence[TokenText],
    options: LanguageTrainOptions,
    card: LanguageModelCard,
    *,
    quiet: bool,
) -> LanguageModelCard:
    """Train, save with the card, and return the card with the last loss."""
    Console(stderr=True, quiet=quiet).print(f"{len(texts):,} records")
    trained = train_language_model(base, options.recipe, texts, options.output, quiet=quiet)
    losses = [entry["loss"] for entry in trained.history if "loss" in entry]
    if losses:
        measured = {"first_loss": round(losses[0], 4), "last_loss": round(losses[-1], 4)}
        card = card.model_copy(update={"metrics": {"training": measured}})
    save_language_model(trained.model, trained.tokenizer, options.output, _text(card))
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        training_curves(trained.history, options.pictures / "training.png")
    return card


def _finish(card: LanguageModelCard, options: LanguageTrainOptions, *, as_json: bool) -> None:
    with outside_faults(options.output):
        written = options.output / f".{CARD}"
        written.write_text(_text(card), encoding="utf-8")
        written.replace(options.output / CARD)
    finish(options.output)
    if as_json:
        print_json({"output": str(options.output), "card": card.model_dump(mode="json")})
        return
    _show(card, options.output)


def _text(card: LanguageModelCard) -> str:
    return card.model_dump_json(indent=2) + "\n"


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}


_NEXT: Mapping[LanguageModelKind, str] = {
    "critic": "Next, make a generator's data:\n  crag reflect-data DATA --critic {} --output FILE",
    "generator": "Next, use it:\n  CRAG_REFLECTION={} crag ask QUESTION --method self-rag",
}


def _show(card: LanguageModelCard, output: Path) -> None:
    console = Console(highlight=False)
    for reason, count in card.left_out.items():
        console.print(f"left out: {count:,} {safe(reason)}")
    losses = card.metrics.get("training", {})
    if losses:
        console.print(f"loss: {losses['first_loss']:.3f} at first, {losses['last_loss']:.3f} last")
    for kind, table in card.confusion.items():
        console.print(_confusion(kind, card.metrics[kind], table))
    console.print(f"Written to {safe(output)}. {safe(_NEXT[card.kind].format(output))}",
                  soft_wrap=True)  # fmt: skip


def _confusion(
    kind: str, metrics: Mapping[str, float], table: Mapping[str, Mapping[str, int]]
) -> Any:
    columns = (safe(label) for label in next(iter(table.values())))
    drawn = plain_table(f"{kind}: {metrics['accuracy']:.1%} right", *columns)
    for truth, row in table.items():
        drawn.add_row(safe(truth), *(str(count) for count in row.values()))
    return drawn
