"""Answering in Ray workers gives the rows of a local run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from crag.papers.bench.answering import Answerer
from crag.papers.bench.budget import Budget
from crag.papers.bench.report import outcomes, results
from crag.papers.bench.resources import RunConfig, load_resources
from crag.papers.bench.rows import Row, RowFile
from crag.papers.bench.runner import (
    Answers,
    RunResult,
    in_process,
    in_workers,
    remaining_units,
    run,
)
from crag.papers.bench.summary import summarise
from crag.papers.bench.units import plan
from crag.runtime.environment import Environment
from tests.papers.bench.chat_server import ChatServer, chatting
from tests.papers.bench.runs import examples, experiment, variant

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, and sockets that it leaves to the collector.
]
COMPARED = experiment(variant("rag"), variant("crag"), variant("binary_llm"))
NAMES = ["barn", "gate", "boat", "kite"]


def environment(chat: ChatServer) -> dict[str, str]:
    """Return what this process and the workers read; these inherit it when the cluster starts."""
    return {
        "OPENAI_BASE_URL": chat.url,
        "CRAG_MODEL": "m",
        "OPENAI_API_KEY": "none",
        "CRAG_EVALUATOR": "chat-direct",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }


@pytest.fixture(scope="module")
def chat() -> Iterator[ChatServer]:
    with chatting() as running:
        yield running


@pytest.fixture
def server(chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    chat.seconds = 0
    for name, value in environment(chat).items():
        monkeypatch.setenv(name, value)
    return chat


@pytest.fixture(scope="module")
def started(chat: ChatServer) -> Iterator[None]:
    """One cluster for the tests after the first, which starts one of its own."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment(chat).items():
            patched.setenv(name, value)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield
        ray.shutdown()


def ran(folder: Path, name: str, config: RunConfig, answers: Answers | None = None) -> RunResult:
    by = Answerer(load_resources(Environment(), config))
    with RowFile(folder / name) as rows:
        todo = remaining_units(plan(COMPARED, examples(folder, NAMES)), rows, by)
        return run(todo, rows, answers or in_process(by))


def table(folder: Path, name: str) -> tuple[str, set[str]]:
    with RowFile(folder / name) as rows:
        lines = summarise(COMPARED, examples(folder, NAMES), rows.rows)
        return results(COMPARED, lines) + outcomes(lines), set(rows.rows)


def same_but_for_time(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {"seconds", "cached"}}


@pytest.mark.usefixtures("server")
@pytest.mark.nightly
def test_the_table_is_that_of_a_local_run(tmp_path: Path) -> None:
    config = RunConfig()
    local = ran(tmp_path, "local.jsonl", config)
    spread = ran(tmp_path, "ray.jsonl", config, in_workers(config, 2))
    assert spread == local
    assert spread.answered == 3 * len(NAMES)
    assert table(tmp_path, "ray.jsonl") == table(tmp_path, "local.jsonl")
    with RowFile(tmp_path / "ray.jsonl") as mine, RowFile(tmp_path / "local.jsonl") as other:
        for key, row in mine.rows.items():
            assert same_but_for_time(row) == same_but_for_time(other.rows[key])


@pytest.mark.nightly
@pytest.mark.usefixtures("server", "started")
def test_a_budget_ends_it_after_the_rows_under_way(tmp_path: Path) -> None:
    config = RunConfig(budget=Budget(calls=3))
    ended = ran(tmp_path, "ray.jsonl", config, in_workers(config, 1))
    assert ended.stopped == "max-calls is 3"
    assert 1 <= ended.answered <= 6
    rest = RunConfig()
    assert ran(tmp_path, "ray.jsonl", rest).resumed == ended.answered
    assert len(table(tmp_path, "ray.jsonl")[1]) == 3 * len(NAMES)
