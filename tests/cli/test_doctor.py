"""`crag doctor` uses each part once, and blames the one that fails."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.cli.doctor import PartStatus, examine
from crag.index import index_paths, open_index
from crag.runtime.environment import Environment
from tests.commands import crag
from tests.loopback import Loopback, completion, serving
from tests.misbehaving import CUT, ERRORS, REFUSALS, THOUGHTS, Way


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor")
    (folder / "kettle.md").write_text("A kettle boils water in three minutes.")
    assert crag("index", "kettle.md", folder=folder).returncode == 0
    return folder


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(indexed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(completion("ready")) as running:
        yield running


def examined(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, PartStatus]:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return {told.part: told for told in examine(Environment())}


def states(told: dict[str, PartStatus]) -> dict[str, str]:
    return {part: one.state for part, one in told.items()}


def test_the_embedded_parts_work(monkeypatch: pytest.MonkeyPatch) -> None:
    told = states(examined(monkeypatch))
    for part in ("embeddings", "index", "evaluator", "answers", "reflection"):
        assert told.pop(part) == "ready"
    assert told.pop("web search") == "missing"
    assert set(told.values()) == {"ready"}


def test_an_encoder_that_cannot_be_loaded_is_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    told = examined(monkeypatch, CRAG_EMBEDDING_MODEL=str(tmp_path / "empty"))
    assert told["embeddings"].state == "broken"
    assert "empty" in told["embeddings"].todo
    assert told["index"].state == "broken"
    assert told["evaluator"].state == "ready"  # The embedded one has an encoder of its own.


def test_an_index_of_another_model_is_broken_and_one_that_is_not_there_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tea.txt").write_text("Tea.")
    other = DeterministicFakeEmbedding(size=8)
    index_paths([tmp_path / "tea.txt"], open_index(tmp_path / "made", other))
    made = examined(monkeypatch, CRAG_INDEX=str(tmp_path / "made"))["index"]
    assert made.state == "broken"
    assert "built with the embedding model 'DeterministicFakeEmbedding'" in made.todo
    none = examined(monkeypatch, CRAG_INDEX=str(tmp_path / "none"))["index"]
    assert (none.state, none.why) == ("missing", "--index, CRAG_INDEX")


def test_servers_are_asked_and_blamed_where_they_refuse(
    monkeypatch: pytest.MonkeyPatch, server: Loopback
) -> None:
    hits = {"query": "", "results": []}
    with serving(hits) as search:
        variables = {
            "CRAG_MODEL": "local",
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": "sk-of-the-test",
            "SEARXNG_URL": search.url,
        }
        told = examined(monkeypatch, **variables)
        assert states(told)["answers"] == states(told)["web search"] == "ready"
        assert (len(server.requests), len(search.requests)) == (3, 1)
        assert told["reflection"].state == "missing"  # The model replies with no JSON.
        server.statuses = search.statuses = [401] * 9
        told = examined(monkeypatch, CRAG_EMBEDDING_MODEL="openai:tiny")
    for part in ("answers", "embeddings", "web search"):
        assert told[part].state == "broken"
        assert told[part].todo
        assert "sk-of-the-test" not in told[part].todo


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (CUT["length"], "cut off (length): raise the server's limit of tokens"),
        (THOUGHTS["think"], ""),
        (lambda _: completion("<think>Hmm.</think>"), "switch its thinking off"),
        (REFUSALS["temperature"], ""),
        *ERRORS.values(),
    ],
)
def test_what_a_server_of_models_does_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, way: Way, words: str
) -> None:
    with serving(way) as model:
        told = examined(monkeypatch, CRAG_MODEL="local", OPENAI_BASE_URL=f"{model.url}/v1")
    assert told["answers"].state == ("broken" if words else "ready")
    assert words in told["answers"].todo


def test_a_reply_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crag.cli.doctor.SECONDS", 0.5)
    with serving(completion("ready")) as model:
        model.seconds = 30
        told = examined(monkeypatch, CRAG_MODEL="local", OPENAI_BASE_URL=f"{model.url}/v1")
    assert told["answers"].state == "broken"
    assert "no answer within 0.5 seconds: limit its replies" in told["answers"].todo


@pytest.mark.parametrize(
    ("name", "value"), [("CRAG_SEARCH", "google"), ("CRAG_PROMPTS", "nowhere")]
)
def test_what_ask_refuses_is_broken_and_the_command_fails(name: str, value: str) -> None:
    done = crag("doctor", "--json", environment={name: value})
    broken = [one for one in json.loads(done.stdout) if one["state"] == "broken"]
    assert [value in f"{one['in_use']}{one['todo']}" for one in broken] == [True]
    assert done.returncode == 1
