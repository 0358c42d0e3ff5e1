"""`crag train encoder`, on a few rows."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from crag.factory.embeddings import load_embeddings
from crag.models.encoder import SentenceEncoder, packaged_encoder
from crag.models.model_card import CARD, ModelCard
from crag.papers.cli import app
from crag.papers.loading.records import file_digest, write_records
from tests.papers.reader.test_encoder import RECIPE, ROWS
from tests.papers.reader.test_reader import ROWS as READING


def call(*arguments: object) -> dict[str, Any]:
    given = ["train", "encoder", *map(str, arguments), "--json"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_rows_become_a_model_and_a_card(tmp_path: Path) -> None:
    write_records(tmp_path / "asked.jsonl", ROWS)
    write_records(tmp_path / "reading.jsonl", READING)
    changes = RECIPE.model_dump(exclude_defaults=True) | {"steps": 2, "held_out": 0.25}
    recipe = [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
    output = tmp_path / "mine"
    told = call(
        tmp_path / "asked.jsonl", tmp_path / "reading.jsonl", "--output", output,
        "--licence", "CC0-1.0", *recipe,
    )  # fmt: skip
    card = ModelCard.model_validate_json((output / CARD).read_bytes())
    assert told["card"] == card.model_dump(mode="json")
    names = {"model.onnx", "tokenizer.json"}
    assert {path.name for path in output.iterdir()} == {CARD, "tokenizer_config.json", *names}
    assert card.files == {name: file_digest(output / name) for name in names}
    assert (card.kind, card.base) == ("encoder", "encoder")
    assert [(one.name, one.pairs, one.licence) for one in card.data] == [
        ("asked.jsonl", 32, "CC0-1.0"), ("reading.jsonl", 16, "CC0-1.0")
    ]  # fmt: skip
    assert card.recipe["steps"] == 2
    mine = load_embeddings(str(output))
    assert isinstance(mine, SentenceEncoder)
    mine.verify()
    assert (mine.name, mine.languages) == (str(output), {"en"})
    assert mine.embed_query("a") != packaged_encoder().embed_query("a")
    assert {kind: one["questions"] for kind, one in card.metrics.items()} == {
        "plain": 4, "search": 4
    }  # fmt: skip
