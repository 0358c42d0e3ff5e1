"""What `crag train critic` and `crag train generator` share: fine-tune a model, write its card."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import typer

from crag.cli.terminal import print_json, print_table, safe, say
from crag.errors import DataError
from crag.models.model_card import CARD
from crag.papers.cli.command import refuse_overwriting
from crag.papers.evaluator.pictures import require_drawable, training_curves
from crag.papers.evaluator.saving import outside_faults
from crag.papers.evaluator.trainer import finish
from crag.papers.loading.records import Record, read_records
from crag.papers.self_rag.language_base import LanguageModel, save_language_model
from crag.papers.self_rag.language_card import (
    LanguageData,
    LanguageModelCard,
    describe_data,
    language_card,
)
from crag.papers.self_rag.language_recipe import LanguageModelKind, LanguageRecipe
from crag.papers.self_rag.language_trainer import (
    TokenText,
    load_base,
    train_language_model,
)
from crag.plain import counted
from crag.reflection_tokens import TOKENS


class LanguageTraining:
    """One training: its data are read, then its base is loaded, trained, and finished.

    Raises:
        DataError: the model to start from is in `output`.
        MissingPackageError: `pictures` are wanted, and matplotlib is not installed.
        TrainingError: they cannot be written to their folder.
    """

    def __init__(
        self,
        kind: LanguageModelKind,
        recipe: LanguageRecipe,
        output: Path,
        pictures: Path | None,
        *,
        quiet: bool,
    ) -> None:
        refuse_overwriting([output], [Path(recipe.base)])
        if pictures:
            require_drawable(pictures)
        self._kind: LanguageModelKind = kind
        self._recipe, self._output, self._pictures, self._quiet = recipe, output, pictures, quiet
        self._files: list[LanguageData] = []

    def read(
        self,
        data: Sequence[Path],
        form: type[Record],
        licence: str | None,
        fault: Callable[[Record], str] = lambda _: "",
    ) -> list[Record]:
        """Return the records of all files, which the card will describe.

        Raises:
            DataError: a line is no record, or has a fault.
        """
        records: list[Record] = []
        for path in data:
            read = read_records(path, form)
            for number, record in enumerate(read, start=1):
                if found := fault(record):
                    raise DataError(path, found, number)
            records += read
            self._files.append(describe_data(path, len(read), licence))
        return records

    def base(self) -> LanguageModel:
        """Load the model to start from."""
        as_words = self._kind == "critic" and self._recipe.form == "released"
        return load_base(self._recipe, tokens=() if as_words else TOKENS)

    def train(
        self,
        base: LanguageModel,
        texts: Sequence[TokenText],
        left_out: Mapping[str, int],
        limits: Sequence[str],
    ) -> LanguageModelCard:
        """Train, save with a card, and return the card with the first and the last loss.

        Raises:
            typer.Exit: in processes other than the first, whose part ends with the training.
        """
        if not self._quiet and os.environ.get("RANK", "0") == "0":
            say(counted(len(texts), "record"), stderr=True)
        card = language_card(self._kind, self._recipe, self._files).model_copy(
            update={
                "left_out": {reason: count for reason, count in left_out.items() if count},
                "limits": list(limits),
            }
        )
        trained = train_language_model(base, self._recipe, texts, self._output, quiet=self._quiet)
        if not trained.is_main:
            raise typer.Exit
        losses = [entry["loss"] for entry in trained.history if "loss" in entry]
        if losses:
            measured = {"first_loss": round(losses[0], 4), "last_loss": round(losses[-1], 4)}
            card = card.model_copy(update={"metrics": {"training": measured}})
        text, weights = _text(card), trained.weights
        save_language_model(trained.model, trained.tokenizer, self._output, text, weights)
        if self._pictures:
            training_curves(trained.history, self._pictures / "training.png")
        return card

    def finish(self, card: LanguageModelCard, following: str) -> None:
        """Write the card as it is now, and show it; `following` says what to do with a folder."""
        with outside_faults(self._output):
            written = self._output / f".{CARD}"
            written.write_text(_text(card), encoding="utf-8")
            written.replace(self._output / CARD)
        finish(self._output)
        if self._quiet:
            print_json({"output": str(self._output), "card": card.model_dump(mode="json")})
            return
        _show(card)
        say(f"Written to {safe(self._output)}. {safe(following.format(self._output))}")


def _text(card: LanguageModelCard) -> str:
    return card.model_dump_json(indent=2) + "\n"


def _show(card: LanguageModelCard) -> None:
    for reason, count in card.left_out.items():
        say(f"left out: {count:,} {safe(reason)}")
    if losses := card.metrics.get("training", {}):
        say(f"loss: {losses['first_loss']:.3f} at first, {losses['last_loss']:.3f} last")
    for kind, table in card.confusion.items():
        rows = ((safe(truth), *map(str, row.values())) for truth, row in table.items())
        labels = (safe(label) for label in next(iter(table.values())))
        print_table(rows, f"{kind}: {card.metrics[kind]['accuracy']:.1%} right", *labels)
