"""`crag train encoder`: the sentence encoder that an index embeds with."""

from pathlib import Path
from typing import Annotated, Any

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import assigned, print_json, say
from crag.papers.cli.command import command
from crag.papers.cli.groups import train
from crag.papers.cli.options import LicenceOption, RecipeSettings

_LIMITS = [
    "It reads English; of a passage it reads 254 tokens.",
    (
        "It learned questions that a chat model wrote about documentation and Wikipedia; of other "
        "texts it may find less than its base."
    ),
]


@command(
    train,
    "crag train encoder questions.jsonl --output my-encoder",
    "crag train encoder questions.jsonl reader.jsonl --output my-encoder --set batch_size=64",
    extra="train",
)
def encoder(
    data: Annotated[
        list[Path],
        typer.Argument(help="Rows of crag train questions, and of crag train reader-data (JSONL)."),
    ],
    output: Annotated[
        Path, typer.Option(help="Folder to write the encoder to.", show_default=False)
    ],
    settings: RecipeSettings = None,
    licence: LicenceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train the sentence encoder on questions and what answers them; run it again to resume."""
    from crag.models.encoder import MAX_LENGTH, SentenceEncoder, packaged_encoder
    from crag.models.model_card import DataFile, ModelCard
    from crag.papers.evaluator.artefacts import write_card
    from crag.papers.evaluator.recipe import valid_recipe
    from crag.papers.evaluator.trainer import finish
    from crag.papers.loading.records import file_digest
    from crag.papers.reader.asked_questions import AskedRow
    from crag.papers.reader.encoder import (
        EncoderRecipe,
        measured,
        pairs_of,
        read_rows,
        save_encoder,
        split_off,
        train_encoder,
    )
    from crag.papers.reader.reading_rows import ReadingRow

    recipe = valid_recipe(EncoderRecipe, assigned(settings))
    described: list[DataFile] = []
    rows: list[AskedRow | ReadingRow] = []
    for path in data:
        read = read_rows(path)
        count = sum(len(pairs_of(row)) for row in read)
        described.append(
            DataFile(
                name=path.name,
                sha256=file_digest(path),
                pairs=count,
                positives=count,
                licence=licence,
            )
        )
        rows += read
    asked = [row for row in rows if isinstance(row, AskedRow)]
    learned, held_out = split_off(asked, recipe.held_out, recipe.seed)
    kept: list[AskedRow | ReadingRow] = [*learned]
    kept += [row for row in rows if isinstance(row, ReadingRow)]
    pairs = [pair for row in kept for pair in pairs_of(row)]
    trained = train_encoder(recipe, pairs, output, quiet=as_json)
    card = ModelCard(
        kind="encoder", base=recipe.start, max_length=MAX_LENGTH, data=described,
        recipe=recipe.model_dump(mode="json"), limits=_LIMITS,
    )  # fmt: skip
    card = save_encoder(trained, output, card)
    found: dict[str, Any] = {}
    if held_out:
        encoders = packaged_encoder(), SentenceEncoder(output)
        found = dict(measured(*encoders, held_out, learned, recipe.seed))
    metrics = {
        kind: {
            "questions": one.questions,
            "recall_at_5_packaged": round(one.packaged, 4),
            "recall_at_5": round(one.own, 4),
        }
        for kind, one in found.items()
    }
    card = card.model_copy(update={"metrics": metrics})
    write_card(output, card)
    finish(output)
    if as_json:
        print_json({"output": str(output), "card": card.model_dump(mode="json")})
        return
    say(f"Written to {output}")
    for kind, one in found.items():
        told = f"{one.own:.3f}, with the packaged encoder {one.packaged:.3f}"
        say(f"  {kind}: found among the first five {told}, of {one.questions:,} questions")
