"""The commands of the guide on training Self-RAG, as they stand there, with a tiny base."""

import json
import re
import shlex
from pathlib import Path

import pytest

from crag.models.model_card import CARD
from crag.papers.self_rag.language_model import LanguageModelCard
from tests.commands import crag
from tests.loopback import serving
from tests.papers.cli.test_reflect_data import reply
from tests.papers.self_rag.test_released_formats import CRITIC_ROWS, GENERATOR_ROWS
from tests.trained import articles, tiny_base, written

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guide" / "train-self-rag.md"
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
    """Return the commands that train a generator."""
    before, _, _ = GUIDE.read_text(encoding="utf-8").partition("## Serve the generator")
    lines = "".join(CONSOLE.findall(before)).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines]


@pytest.mark.nightly
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
    for name in ("self_rag_small", "self_rag_7b"):
        (recipes / f"{name}.toml").write_text(f"[critic]{RECIPE}[generator]{RECIPE}")
    (tmp_path / "critic_train.json").write_text(json.dumps(CRITIC_ROWS))
    held_out = [row | {"input": row["input"].replace("When", "Where")} for row in CRITIC_ROWS]
    (tmp_path / "critic_dev.json").write_text(json.dumps(held_out))
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
        "reflect-data generator", "reflect-data generator",
        "train generator", "ask QUESTION", "train generator",
    ]  # fmt: skip
    assert "[Continue to Use Evidence]" in (tmp_path / "longer.jsonl").read_text()
    for kind in ("critic", "self-rag", "critic-7b", "self-rag-7b"):
        card = LanguageModelCard.model_validate_json(
            (tmp_path / "models" / kind / CARD).read_bytes()
        )
        assert card.metrics["training"]["last_loss"] > 0
