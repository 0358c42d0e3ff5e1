"""Every graph with every command that asks one: it is known there, and it answers."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from crag.cli.app import app
from crag.graph_registry import GRAPHS
from tests import commands
from tests.papers.bench.runs import chatting

QUESTION = "What colour is the barn?"
TEXT = "The barn is indeed red."


class Place(NamedTuple):
    """Where commands run: a folder with an index, and a chat model for all parts that ask one."""

    folder: Path
    environment: dict[str, str]

    def told(self, *words: str | Path) -> dict[str, Any]:
        """Run a command, and return the object that it prints."""
        done = commands.crag(*words, "--json", folder=self.folder, environment=self.environment)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def questions(self, **more: object) -> Path:
        path = self.folder / "questions.jsonl"
        path.write_text(json.dumps({"id": "1", "question": QUESTION, "answers": ["red"]} | more))
        return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("graphs")
    (folder / "barn.md").write_text(f"# Barn\n\n{TEXT}\n")
    with chatting() as server:
        environment = {
            "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "CRAG_MODEL": "m",
            "CRAG_EVALUATOR": "chat", "CRAG_INDEX": str(folder / "index"),
        }  # fmt: skip
        found = Place(folder, environment)
        found.told("index", "barn.md")
        yield found


def ask(place: Place, graph: str) -> tuple[str, dict[str, Any]]:
    told = place.told("ask", QUESTION, "--method", graph.replace("_", "-"))
    return told["answer"], told["usage"]


def chat(place: Place, graph: str) -> tuple[str, dict[str, Any]]:
    words = ("chat", "--method", graph.replace("_", "-"))
    done = commands.crag(
        *words, folder=place.folder, environment=place.environment, answer=QUESTION
    )
    return done.stdout, {"llm_calls": done.stdout.count(" model call")}


def filed(command: str, place: Place, graph: str) -> tuple[str, dict[str, Any]]:
    output, method = place.folder / f"{command}-{graph}.jsonl", graph.replace("_", "-")
    place.told(command, place.questions(), "--method", method, "--output", output)
    row = json.loads(output.read_text())
    return row["answer"], row["usage"]


COMMANDS: Mapping[str, Callable[[Place, str], tuple[str, dict[str, Any]]]] = {
    "ask": ask, "chat": chat, **{name: partial(filed, name) for name in ("evaluate", "batch")},
}  # fmt: skip
PAIRS = [(command, graph) for command in COMMANDS for graph in GRAPHS]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # a streamed form, by openai
@pytest.mark.parametrize(("command", "graph"), PAIRS)
def test_every_command_asks_every_graph(place: Place, command: str, graph: str) -> None:
    answer, usage = COMMANDS[command](place, graph)
    assert "It is red" in answer
    assert usage["llm_calls"] > 0


def test_every_command_with_a_method_is_in_the_table() -> None:
    found = {
        name
        for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
        if any("--method" in one.opts for one in command.params)
    }
    assert found == set(COMMANDS)
