"""What makes a run of `crag batch` another one, whose answers do not belong in the same file."""

from pathlib import Path

import pytest

from crag.asking.batch import Asking, contents_of
from crag.runtime.environment import Environment


@pytest.fixture(autouse=True)
def _no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # A .env file of whoever runs the tests is not read.


def run(**values: object) -> str:
    shared = Environment(**values).shared()
    return Asking(shared, "crag", (), contents_of(shared)).run


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("index", "other"),
        ("evaluator", "cosine"),
        ("reflection_dtype", "float16"),
        ("reflection_tokens", "optional"),
        ("reflection_url", "http://127.0.0.1:1/v1"),
        ("search", "wikipedia"),
        ("tavily_base_url", "http://127.0.0.1:1"),
        ("searxng_url", "http://127.0.0.1:1"),
        ("wikipedia_language", "de"),
        ("wikipedia_url", "http://127.0.0.1:1"),
        ("allow_loopback", True),
    ],
)
def test_what_decides_answers_makes_another_run(name: str, value: object) -> None:
    assert run(**{name: value}) != run()


@pytest.mark.parametrize("variable", ["TAVILY_API_KEY", "OPENAI_API_KEY"])
def test_a_key_that_chooses_a_part_makes_another_run(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run(), run(search="none", model="m")
    monkeypatch.setenv(variable, "key")
    assert run() != before[0]
    assert run(search="none", model="m") == before[1]


def test_an_encoder_that_was_trained_anew_makes_another_run(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("1")
    before = run(embedding_model=str(tmp_path))
    (tmp_path / "card.json").write_text("2")
    assert run(embedding_model=str(tmp_path)) != before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("contact", "me@example.org"),
        ("evaluator_seconds", 60),
        ("logs", "json"),
        ("model_threads", 2),
        ("read_seconds", 5),
        ("read_megabytes", 900),
        ("telemetry", "off"),
    ],
)
def test_what_changes_no_answer_goes_on_with_the_run(name: str, value: object) -> None:
    assert run(**{name: value}) == run()
