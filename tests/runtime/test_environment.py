"""What the environment says about the web."""

from pathlib import Path

import pytest

from crag.errors import ConfigurationError, SettingsError
from crag.factory.embeddings import choose_limits
from crag.runtime.environment import Environment


@pytest.fixture(autouse=True)
def _no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # A .env file of whoever runs the tests is not read.


def test_nothing_is_configured_by_default() -> None:
    found = Environment()
    assert (found.tavily_base_url, found.searxng_url, found.wikipedia_url) == (None, None, None)
    assert (found.wikipedia_language, found.contact) == ("en", "")
    assert found.allow_loopback is False


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("TAVILY_BASE_URL", "tavily_base_url"),
        ("CRAG_TAVILY_URL", "tavily_base_url"),
        ("SEARXNG_URL", "searxng_url"),
        ("CRAG_SEARXNG_URL", "searxng_url"),
        ("CRAG_WIKIPEDIA_URL", "wikipedia_url"),
        ("CRAG_WIKIPEDIA_LANGUAGE", "wikipedia_language"),
        ("CRAG_CONTACT", "contact"),
        ("CRAG_SEARCH", "search"),
    ],
)
def test_each_variable_has_its_field(
    variable: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "value")
    assert getattr(Environment(), field) == "value"


def test_a_file_named_env_counts_too() -> None:
    Path(".env").write_text("SEARXNG_URL=http://localhost:8888\nCRAG_PROMPTS=kept/prompts\n")
    found = Environment()
    assert found.searxng_url == "http://localhost:8888"
    assert found.prompts == Path("kept/prompts")


def test_the_home_folder_is_known_where_no_shell_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Path(".env").write_text(
        "CRAG_INDEX=~/kept\nCRAG_PROMPTS=~/prompts\nCRAG_EMBEDDING_MODEL=~/encoder\n"
        "CRAG_EVALUATOR=grader~1\n"
    )
    found = Environment()
    assert (found.index, found.prompts) == (str(tmp_path / "kept"), tmp_path / "prompts")
    assert found.embedding_model == str(tmp_path / "encoder")
    assert found.evaluator == "grader~1"


def test_another_process_is_told_paths_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_INDEX", "qdrant://./kept")
    monkeypatch.setenv("CRAG_PROMPTS", "mine")
    told = dict(Environment().shared())
    assert told["index"] == f"qdrant://{tmp_path / 'kept'}"
    assert (told["evaluator"], told["prompts"]) == ("default", tmp_path / "mine")


def test_a_folder_in_capitals_is_no_name_of_an_evaluator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("Reader", "reader", "Embedded"):
        (tmp_path / folder).mkdir(exist_ok=True)
    monkeypatch.setenv("CRAG_EVALUATOR", "Reader")
    monkeypatch.setenv("CRAG_EVALUATOR_FALLBACK", "reader")
    monkeypatch.setenv("CRAG_REFLECTION", "Embedded")
    told = dict(Environment().shared())
    assert told["evaluator"] == str(tmp_path / "Reader")
    assert (told["evaluator_fallback"], told["reflection"]) == ("reader", "Embedded")


def test_a_file_named_env_that_is_not_utf8_is_named_with_its_line() -> None:
    Path(".env").write_bytes(b"CRAG_SEARCH=none\nCRAG_INDEX=caf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"^\.env: line 2 is not UTF-8"):
        Environment()


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("1", True), ("Yes", True), ("off", False), ("", False)]
)
def test_a_switch_is_on_or_off(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_ALLOW_LOOPBACK", value)
    assert Environment().allow_loopback is expected


def test_another_word_for_a_switch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_ALLOW_LOOPBACK", "perhaps")
    with pytest.raises(SettingsError, match=r"CRAG_ALLOW_LOOPBACK.*perhaps.*true and false"):
        Environment()


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-secret")
    assert "secret" not in repr(Environment())


@pytest.mark.parametrize("name", ["CRAG_EVALUATOR_SECONDS", "CRAG_READ_SECONDS"])
@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_seconds_that_nobody_can_wait_are_refused(
    name: str, seconds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, seconds)
    with pytest.raises(SettingsError, match=f"{name}.*allowed are seconds above 0"):
        Environment()


@pytest.mark.parametrize("megabytes", ["0", "199", "1e9", "-1500", "much"])
def test_memory_in_which_nothing_can_be_read_is_refused(
    megabytes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_READ_MEGABYTES", megabytes)
    with pytest.raises(SettingsError, match=r"CRAG_READ_MEGABYTES.*whole numbers from 200"):
        Environment()


def test_what_reading_a_file_may_take_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_READ_SECONDS", "300")
    monkeypatch.setenv("CRAG_READ_MEGABYTES", "4000")
    assert choose_limits(Environment()) == (300.0, 4000)
