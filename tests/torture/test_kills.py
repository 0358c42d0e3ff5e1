"""Processes that are killed while they write: what they acknowledged is there, and all opens."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver

from crag.graph import build_crag
from crag.papers.experiments.cache import Cache
from crag.papers.training.trainer import WORK
from tests.commands import variables
from tests.papers.experiments.chat_server import ChatServer, chatting
from tests.papers.experiments.runs import questions
from tests.postgres import postgres
from tests.repeating import times
from tests.torture.killing import (
    Process,
    asking,
    checkpoints,
    command,
    evaluating,
    graph_on,
    making_base,
    moments,
    slow_parts,
    steps,
    thread,
)
from tests.torture.telling import tell
from tests.trained import some_pairs

KILLS = times(2, 10, 50)
QUESTION = "Who wrote the first program?"
STEPS = ({"open_run"}, {"retrieve"}, {"grade"}, {"refine", "web"}, {"generate"})
"""The nodes that an ambiguous question passes; those of one step run at the same time."""


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return where checkpoints are kept; none is there yet."""
    if request.param == "sqlite":
        yield str(tmp_path / "checkpoints.sqlite")
        return
    with postgres() as url:
        with PostgresSaver.from_conn_string(url) as keeper:
            keeper.setup()
        yield url


@pytest.mark.slow
def test_a_graph_goes_on_with_the_rest_of_its_steps(location: str) -> None:
    whole: Any = build_crag(slow_parts(), checkpointer=InMemorySaver())
    whole.invoke({"question": QUESTION}, thread(0))
    expected = state_of(whole, 0)
    first, answered, gone_on = 0, 0, 0
    for seconds in moments(KILLS, seed=5, longest=0.3):
        process = Process(asking, location, first, QUESTION)
        process.wait_until_told()
        time.sleep(seconds)
        told = process.kill()
        with graph_on(location) as graph:
            ended = [number for number, node in told if not node]
            for number in ended:
                assert state_of(graph, number) == expected
            first = first + len(ended)
            answered += len(ended)
            gone_on += _gone_on(graph, first, [node for number, node in told if number == first])
            assert state_of(graph, first) == expected
        first += 1
    tell(f"{KILLS} kills of a graph on {location[:8]}: {answered} answers kept, {gone_on} went on")
    with checkpoints(location) as keeper:
        kept = {one.config["configurable"]["thread_id"] for one in keeper.list(None)}
    assert kept == {str(number) for number in range(first)}
    if KILLS > 10:
        assert gone_on > KILLS / 4


def state_of(graph: Any, number: int) -> dict[str, Any]:
    """Return the state of a thread, without the time that it took."""
    values: dict[str, Any] = graph.get_state(thread(number)).values
    return values | {"usage": values["usage"] | {"web_milliseconds": 0}}


def _gone_on(graph: Any, number: int, told: list[str]) -> bool:
    """Run what is left of a thread; return whether a part of it was stored."""
    state = graph.get_state(thread(number))
    asked = None if state.created_at else {"question": QUESTION}
    # Not `next`: that leaves out nodes whose results are stored, though their step is not.
    left = {task.name for task in state.tasks}
    rest = list(steps(graph, asked, number)) if asked or left else []
    begun = next((place for place, step in enumerate(STEPS) if step & left), 0)
    begun = begun if asked or left else len(STEPS)
    # A node is told at the end of its step, when all earlier steps are stored.
    assert begun >= max((place for place, step in enumerate(STEPS) if step & {*told}), default=0)
    # Of nodes that ran together some may be stored.
    assert set().union(*STEPS[begun + 1 :]) <= {*rest} <= set().union(*STEPS[begun:])
    assert len(rest) == len({*rest})
    return 0 < begun < len(STEPS)


EXPERIMENT = """
name = "Kill"
task = "popqa"
baseline = "rag"
metrics = ["match", "knowledge_words", "abstained", "llm_calls"]

[[variant]]
name = "rag"
method = "rag"

[[variant]]
name = "crag"
method = "crag"
evaluator = "chat-direct"

[[variant]]
name = "binary-llm"
method = "binary_llm"
"""
AT_ONCE = 2


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chatting() as running:
        yield running


@pytest.mark.slow
def test_a_benchmark_asks_for_the_rest_and_reports_the_same(
    tmp_path: Path, server: ChatServer
) -> None:
    (tmp_path / "kill.toml").write_text(EXPERIMENT, "utf-8")
    data = questions(tmp_path, [f"thing{number}" for number in range(4 * KILLS)])
    told = {"OPENAI_BASE_URL": server.url, "CRAG_MODEL": "m", "OPENAI_API_KEY": "none"}
    environment = variables({"CRAG_EVALUATOR": "chat-direct", **told})
    whole, killed = tmp_path / "whole", tmp_path / "killed"

    def started(output: Path) -> Process:
        arguments = ["bench", tmp_path / "kill.toml", "--data", data, "--output", output]
        arguments += ["--concurrency", AT_ONCE, "--json"]
        return Process(command, environment, list(map(str, arguments)))

    expected, needed = json.loads(started(whole).ended()), len(server.prompts)
    server.seconds = 0.05
    for seconds in moments(KILLS, seed=6, longest=0.4):
        before = rows_of(killed)
        process = started(killed)
        process.wait_until(lambda before=before: len(rows_of(killed)) > len(before))  # type: ignore[misc]
        time.sleep(seconds)
        process.kill()
        assert rows_of(killed)[: len(before)] == before
        with closing(Cache(killed / "cache.sqlite")):
            pass
    kept, server.seconds = rows_of(killed), 0.0
    resumed = json.loads(started(killed).ended())
    rows = rows_of(killed)
    tell(f"{KILLS} kills of a benchmark: {len(kept)} rows kept, {len(rows) - len(kept)} added")
    assert (resumed["rows"]["resumed"], rows[: len(kept)]) == (len(kept), kept)
    assert len({json.loads(row)["key"] for row in rows}) == len(rows) == 3 * 4 * KILLS
    assert resumed["variants"] == expected["variants"]
    # What was on its way at a kill is asked again: for a row several prompts, up to those of its
    # question.
    of_question = needed // (4 * KILLS)
    assert len(server.prompts) <= 2 * needed + AT_ONCE * KILLS * of_question


def rows_of(folder: Path) -> list[str]:
    """Return the rows that are written to their end."""
    place = folder / "rows.jsonl"
    text = place.read_bytes() if place.exists() else b""
    return text[: text.rfind(b"\n") + 1].decode().splitlines()


@pytest.mark.slow
def test_a_training_goes_on_and_ends_with_the_same_evaluator(tmp_path: Path) -> None:
    base, whole, killed = (tmp_path / name for name in ("base", "whole", "killed"))
    Process(making_base, base).ended()
    data, pairs = tmp_path / "pairs.jsonl", some_pairs(60)
    data.write_text("".join(json.dumps(pair._asdict()) + "\n" for pair in pairs), "utf-8")
    recipe = {
        "base": base, "max_length": 48, "learning_rate": 3e-3, "batch_size": 8,
        "evaluations": 0, "save_steps": 2, "epochs": 4 + 2 * KILLS,
    }  # fmt: skip
    changes = [word for name, value in recipe.items() for word in ("--set", f"{name}={value}")]

    def started(output: Path) -> Process:
        arguments = ["train", str(data), "--output", str(output), "--held-out", "0.2", "--json"]
        return Process(command, variables({}), [*arguments, *changes])

    def scores(folder: Path) -> list[float]:
        texts = [pair.text for pair in pairs]
        found: list[float] = Process(evaluating, folder, pairs[0].question, texts).ended()
        return found

    expected, card = json.loads(started(whole).ended())["card"], whole / "card.json"
    for number, seconds in enumerate(moments(KILLS, seed=8, longest=0.1)):
        # Those at the end are killed while they write the evaluator.
        writes, before = number >= KILLS * 4 // 5, newest(killed)
        process = started(killed)
        process.wait_until(
            lambda writes=writes, before=before: (  # type: ignore[misc]
                (killed / ".new").exists() if writes else newest(killed) > before
            )
        )
        time.sleep(seconds / 10 if writes else seconds)
        process.kill(may_have_ended=writes)
        if (killed / card.name).exists():
            assert scores(killed) == scores(whole)
        else:
            assert newest(killed) >= before
    steps_kept = newest(killed)
    card = json.loads(started(killed).ended())["card"]
    tell(f"{KILLS} kills of a training: {steps_kept} steps kept")
    assert {name: card[name] for name in card} == {name: expected[name] for name in card}
    assert scores(killed) == scores(whole)
    assert {path.name for path in killed.iterdir()} == {path.name for path in whole.iterdir()}


def newest(folder: Path) -> int:
    """Return the step of the last checkpoint that is written to its end; 0 if there is none."""
    found = [0]
    for state in (folder / WORK).glob("checkpoint-*/trainer_state.json"):
        with suppress(OSError, ValueError):  # Written just now, or removed.
            found.append(json.loads(state.read_text("utf-8"))["global_step"])
    return max(found)
