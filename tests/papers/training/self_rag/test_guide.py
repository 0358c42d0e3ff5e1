"""The commands of the guide on training Self-RAG, as they stand there, with a tiny base."""

import json
import re
import shlex
from pathlib import Path

import pytest

from crag.models.model_card import CARD
from crag.papers.training.records import read_records
from crag.papers.training.self_rag.generator_data import DataRules, ReflectiveRecord
from crag.papers.training.self_rag.language_card import LanguageModelCard
from crag.papers.training.self_rag.language_recipe import LanguageRecipe
from crag.papers.training.self_rag.released_critic import RELEASED_PAD
from tests.commands import crag
from tests.loopback import serving
from tests.papers.test_reflect_data import reply
from tests.papers.training.self_rag.test_released_formats import (
    CRITIC_ROWS,
    GENERATOR_ROWS,
    PREAMBLE,
    pickled,
)
from tests.reflective import articles, tiny_base, written

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "train-self-rag.md"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
RECIPE = """
base = "base"
batch_size = 4
accumulation = 1
learning_rate = 3e-3
max_length = 500
steps = 3
"""


def commands() -> list[list[str]]:
    """Return the commands up to the server; those below have tests of their own."""
    text = GUIDE.read_text(encoding="utf-8").partition("## Serve the generator")[0]
    lines = "".join(CONSOLE.findall(text)).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines]


@pytest.mark.thorough
def test_a_newcomer_gets_from_nothing_to_a_trained_model(tmp_path: Path) -> None:
    rows = articles(32)
    written(tmp_path / "squad_train.jsonl", rows[:24])
    written(tmp_path / "squad_dev.jsonl", rows[24:])
    (tmp_path / "texts").mkdir()
    for place, row in enumerate(rows[:20]):
        (tmp_path / "texts" / f"{place}.md").write_text(f"# {row['title']}\n\n{row['text']}\n")
    tiny_base(tmp_path / "base")
    recipes = tmp_path / "papers" / "recipes"
    recipes.mkdir(parents=True)
    for name, form in (("self_rag_small", "ours"), ("self_rag_7b", "released")):
        table = f'{RECIPE}form = "{form}"\n'
        (recipes / f"{name}.toml").write_text(f"[critic]{table}[generator]{table}")
    pickled(tmp_path / "base", tmp_path / "self_rag_critic", {"pad_token": RELEASED_PAD})
    (tmp_path / "critic_train.json").write_text(json.dumps(CRITIC_ROWS))
    held_out = [row | {"input": row["input"].replace("When", "Where")} for row in CRITIC_ROWS]
    (tmp_path / "critic_dev.json").write_text(json.dumps(held_out))
    (tmp_path / "preamble.txt").write_text(PREAMBLE)
    written(tmp_path / "train.jsonl", GENERATOR_ROWS)
    ran: list[str] = []
    for words in commands():
        variables = dict(word.split("=", 1) for word in words[: words.index("crag")])
        arguments = words[words.index("crag") + 1 :]
        with serving(reply(reason="as it says", label="Relevant")) as server:
            if "--chat" in arguments:
                variables |= {"OPENAI_BASE_URL": f"{server.url}/v1", "CRAG_MODEL": "labeller"}
            done = crag(*arguments, folder=tmp_path, environment=variables)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        ran.append(" ".join(arguments[:2]))
    assert ran == [
        "reflect-data critic", "reflect-data critic", "train critic", "train critic",
        "index texts/",
        "reflect-data pairs", "reflect-data generator", "reflect-data pairs",
        "reflect-data generator", "reflect-data generator", "reflect-data generator",
        "train generator", "ask QUESTION", "train generator",
    ]  # fmt: skip
    assert "[Continue to Use Evidence]" in (tmp_path / "longer.jsonl").read_text()
    released = read_records(tmp_path / "as_released.jsonl", ReflectiveRecord)
    assert [one.fault for one in released if one.fault or not one.dataset_name] == []
    for kind in ("critic", "self-rag", "critic-7b", "self-rag-7b"):
        card = LanguageModelCard.model_validate_json(
            (tmp_path / "models" / kind / CARD).read_bytes()
        )
        assert card.metrics["training"]["last_loss"] > 0


TABLE = re.compile(r"<!-- training choices -->\n(.*?)<!-- end of training choices -->", re.DOTALL)


def test_every_option_of_the_table_exists() -> None:
    (table,) = TABLE.findall(GUIDE.read_text(encoding="utf-8"))
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    assert len(rows) > 15
    settings = {**LanguageRecipe.model_fields, **DataRules.model_fields}
    helped = {
        option
        for words in (("reflect-data", "critic"), ("reflect-data", "pairs"))
        for option in re.findall(r"--[a-z-]+", crag(*words, "--help").stdout)
    }
    for row in rows:
        assert len(row) == 5, row
        options = re.findall(r"`([^`]+)`", row[4])
        assert options or "no option" in row[4], row
        for option in options:
            name, _, value = option.partition("=")
            assert name in (helped if name.startswith("--") else settings), option
            for form in (LanguageRecipe, DataRules):
                if value and name in form.model_fields:
                    form.model_validate({name: value})
