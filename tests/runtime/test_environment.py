"""Variables, `.env` and `crag.toml`: what they say, what overrules what, and what is refused."""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from crag.cli.terminal import environment
from crag.errors import DataError, SettingsError
from crag.runtime.environment import Environment
from crag.runtime.ray_cluster import _Actor


@pytest.fixture(autouse=True)
def _no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # A .env file of whoever runs the tests is not read.


def write(text: str, path: str = "crag.toml") -> None:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def test_the_environment_overrules_env_which_overrules_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write('model = "file"\nevaluator = "chat"\nsearch = "wikipedia"\nindex = "kept"')
    write("CRAG_MODEL=dotenv\nCRAG_EVALUATOR=reader\n", ".env")
    monkeypatch.setenv("CRAG_MODEL", "environment")
    found = Environment()
    assert (found.model, found.evaluator, found.search) == ("environment", "reader", "wikipedia")
    assert (found.index, environment("other").index) == ("kept", "other")


def test_the_home_folder_is_known_where_no_shell_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write("CRAG_INDEX=~/kept\nCRAG_PROMPTS=~/prompts\nCRAG_EVALUATOR=grader~1\n", ".env")
    found = Environment()
    assert (found.index, found.prompts) == (str(tmp_path / "kept"), tmp_path / "prompts")
    assert found.evaluator == "grader~1"


def test_another_process_gets_all_but_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    write('model = "m"\nsearxng_url = "http://127.0.0.1:8"')
    monkeypatch.setenv("CRAG_PROMPTS", "mine")
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-secret")
    here = Environment()
    sent = pickle.dumps(here)
    assert b"secret" not in sent
    assert "secret" not in repr(here)
    Path("crag.toml").unlink()
    monkeypatch.setenv("CRAG_PROMPTS", "another")
    monkeypatch.setenv("SEARXNG_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    assert pickle.loads(sent) == here  # noqa: S301 - our own
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-another")
    assert pickle.loads(sent).tavily_api_key.get_secret_value() == "tvly-another"  # noqa: S301


def key_of(place: Environment) -> Callable[[str], list[str | None]]:
    return lambda _: [place.key]


def test_a_worker_on_ray_reads_the_secrets_of_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    sent = pickle.dumps(partial(key_of, Environment()))
    Path(".env").write_text("OPENAI_API_KEY=sk-of-this-folder")
    monkeypatch.chdir("/")  # Where the cluster was started.
    (row,) = _Actor(sent, tmp_path)({"item": pickle.dumps("one")})
    assert pickle.loads(row["item"]) == "sk-of-this-folder"  # noqa: S301


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("CRAG_ALLOW_LOOPBACK", "perhaps", "valid boolean"),
        ("CRAG_READ_SECONDS", "0", "greater than 0"),
        ("CRAG_READ_MEGABYTES", "199", "200"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_what_is(
    variable: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        Environment()
    assert str(caught.value).startswith(f"setting {variable!r} cannot be {value!r}: ")
    assert allowed in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('evalutor = "chat"', r"unknown key 'evalutor'; did you mean evaluator"),
        ('zebra = "x"', "known are allow_loopback, contact"),
        ("model = ", "it is no TOML"),
        ('config = "other.toml"', "unknown key 'config'"),
        ('openai_api_key = "abc"', "unknown key 'openai_api_key'.*Keys and passwords belong in"),
        ('model = "sk-abcdefghijklm"', "model holds a secret: keys and passwords belong in"),
        ('index = "postgresql://me:hush@host/name"', "index holds a secret"),
    ],
)
def test_what_it_may_not_hold(text: str, words: str) -> None:
    write(text)
    with pytest.raises(DataError, match=words) as caught:
        Environment()
    assert not {"abc", "sk-abcdefghijklm"} & set(str(caught.value).replace(":", " ").split())
    assert "hush" not in str(caught.value)


def test_files_that_cannot_be_read_are_named() -> None:
    Path(".env").write_bytes(b"CRAG_INDEX=caf\xe9\n")
    with pytest.raises(DataError, match=r"^\.env: save it as UTF-8"):
        Environment()
