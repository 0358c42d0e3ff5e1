"""The commands of the guide on training Self-RAG, as they stand there, with a tiny base."""

import re
import shlex
from pathlib import Path

import pytest

from crag.models.model_card import CARD
from crag.papers.training.self_rag.language_card import LanguageModelCard
from tests.commands import crag
from tests.reflective import articles, tiny_base, written

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "train-self-rag.md"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
RECIPE = """
base = "base"
batch_size = 4
accumulation = 1
learning_rate = 3e-3
max_length = 400
steps = 3
"""


def commands() -> list[list[str]]:
    """Return the commands up to the server; it and the chat model have tests of their own."""
    text = GUIDE.read_text(encoding="utf-8").partition("## Serve the generator")[0]
    lines = "".join(CONSOLE.findall(text)).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines if "--chat" not in line]


@pytest.mark.thorough
def test_a_newcomer_gets_from_nothing_to_a_trained_model(tmp_path: Path) -> None:
    rows = articles(32)
    written(tmp_path / "squad_train.jsonl", rows[:24])
    written(tmp_path / "squad_dev.jsonl", rows[24:])
    (tmp_path / "texts").mkdir()
    for place, row in enumerate(rows[:20]):
        (tmp_path / "texts" / f"{place}.md").write_text(f"# {row['title']}\n\n{row['text']}\n")
    tiny_base(tmp_path / "base")
    recipe = tmp_path / "papers" / "recipes" / "self_rag_small.toml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(f"[critic]{RECIPE}[generator]{RECIPE}")
    ran: list[str] = []
    for words in commands():
        variables = dict(word.split("=", 1) for word in words[: words.index("crag")])
        arguments = words[words.index("crag") + 1 :]
        done = crag(*arguments, folder=tmp_path, environment=variables)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        ran.append(" ".join(arguments[:2]))
    assert ran == [
        "reflect-data critic", "train critic", "index texts/", "reflect-data pairs",
        "reflect-data generator", "train generator", "ask QUESTION",
    ]  # fmt: skip
    for kind in ("critic", "self-rag"):
        card = LanguageModelCard.model_validate_json(
            (tmp_path / "models" / kind / CARD).read_bytes()
        )
        assert card.metrics["training"]["last_loss"] > 0
