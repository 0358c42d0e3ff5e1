"""The command line, with the embedded default and real documents."""

import contextlib
import json
import socket
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crag.cli.app import app
from crag.cli.show import show
from crag.errors import CragError
from crag.state import AnswerSentence, SentenceStatus
from tests import commands
from tests.commands import CRAG, variables

runner = CliRunner()
GUIDE = (
    "# Kettles\n\nA kettle boils water in three minutes. The lid of the kettle must be closed.\n\n"
    "## Care\n\nRemove limescale from the kettle with vinegar once a month.\n"
)


def indexed(folder: Path) -> Path:
    """Return a folder with a document and its index."""
    (folder / "docs").mkdir()
    (folder / "docs" / "kettle.md").write_text(GUIDE)
    with contextlib.chdir(folder):
        assert call("index", "docs", "--index", "made").startswith("made: 1 added")
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def index(shared: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Stand in the folder that the tests share, and return its index, which only they ask."""
    monkeypatch.chdir(shared)
    return "made"


@pytest.fixture
def own_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Stand in a folder of the test's own, whose index it changes."""
    monkeypatch.chdir(indexed(tmp_path))
    return "made"


def call(*arguments: str, code: int = 0) -> str:
    result = runner.invoke(app, arguments, catch_exceptions=False, env={"COLUMNS": "400"})
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_question_the_documents_answer(index: str) -> None:
    shown = call("ask", "How do I remove limescale from the kettle?", "--index", index)
    assert "retrieve" not in shown
    assert shown.endswith("\nanswered, graded correct\n")
    assert "Remove limescale from the kettle with vinegar once a month." in shown
    assert "” [1]" in shown
    assert "docs/kettle.md, line" in shown


def test_a_question_they_do_not_answer_abstains_and_names_the_event(index: str) -> None:
    shown = call("ask", "Who won the chess championship of 1972?", "--index", index, code=4)
    assert shown.endswith("not found, graded incorrect\n")
    assert "search_unavailable" in shown
    assert "I could not find this in the documents." in shown


def test_json_is_one_object_with_the_whole_trace(index: str) -> None:
    shown = call("ask", "How long does a kettle take to boil water?", "--index", index, "--json")
    trace = json.loads(shown)
    assert shown.count("\n") == 1
    assert set(trace) >= {
        "question", "action", "outcome", "answer", "citations", "strips", "events", "usage",
    }  # fmt: skip
    assert trace["citations"][0]["source"]["url"].endswith("docs/kettle.md")


def test_a_trace_shows_scores_and_strips(index: str) -> None:
    asked = ("ask", "How long does a kettle take to boil water?", "--index", index, "--trace")
    shown = call(*asked, "--set", "strips_kept=1")
    documents, strips = shown.split("\naction: correct, upper 0.")
    assert "docs/kettle.md, line" in documents
    assert "(not among the best 1)" in shown
    assert strips.index("(among the best)") < strips.index("” [1]")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", " "], "question is empty"),
        (["ask", "x" * 100_000], "the limit is 8,000"),
        (["ask", "Why?", "--set", "upper"], "name=value"),
        (["ask", "Why?", "--set", " =3"], "setting '' cannot be '3': write it as name=value"),
    ],
)
def test_bad_input_is_an_error_with_the_fix(index: str, arguments: list[str], message: str) -> None:
    with pytest.raises(CragError, match=message):
        runner.invoke(app, [*arguments, "--index", index], catch_exceptions=False)


def test_an_error_leaves_with_2_and_without_a_stack_trace() -> None:
    done = commands.crag("ask", "Why?", "--set", "k=0")
    assert (done.stdout, done.returncode) == ("", 2)
    assert "setting 'k' cannot be '0'" in done.stderr


def test_a_port_that_is_taken_is_named(index: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = commands.crag("serve", "--index", index, "--port", port)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr


def test_the_documents_of_the_index_are_listed(own_index: str, tmp_path: Path) -> None:
    (tmp_path / "tea.csv").write_text("tea,minutes\nblack,4\ngreen,2\n")
    call("index", "tea.csv", "--index", own_index)
    files = json.loads(call("list", "--index", own_index, "--json"))
    assert [(file["path"], file["title"], file["chunks"]) for file in files] == [
        (str(tmp_path / "docs" / "kettle.md"), "Kettles", 1),
        (str(tmp_path / "tea.csv"), "", 2),
    ]
    shown = call("list", "--index", own_index)
    assert shown.splitlines()[0].split() == ["1", "docs/kettle.md", "Kettles"]
    assert shown.splitlines()[-1] == "2 files, 3 chunks"


def test_an_output_that_is_read_too_is_refused_and_kept(tmp_path: Path) -> None:
    read = tmp_path / "read.jsonl"
    read.write_text('{"question": "Why?"}\n')
    (tmp_path / "link.jsonl").symlink_to(read)
    for command, problem in (
        ("batch", "link.jsonl, line 1: is not an answer of `crag batch`"),
        ("evaluate", "link.jsonl: writing it would overwrite read.jsonl, which is read"),
    ):
        done = commands.crag(command, read.name, "--output", "link.jsonl", folder=tmp_path)
        assert done.returncode == 2
        assert problem in done.stderr
        assert read.read_text() == '{"question": "Why?"}\n'
        done = commands.crag(command, read.name, "--output", "/dev/null", folder=tmp_path)
        assert done.returncode == 2
        assert "/dev/null: is no file" in done.stderr
    with pytest.raises(OSError, match="/proc"):  # Before the index is opened to ask.
        commands.crag("evaluate", read.name, "--output", "/proc/own.jsonl", folder=tmp_path)


def test_a_module_in_the_folder_is_not_imported(tmp_path: Path) -> None:
    """A folder with a crag.toml may be somebody else's, and is not to run code by it."""
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    (tmp_path / "own_shelf.py").write_text("open('ran', 'w')")
    (tmp_path / "crag.toml").write_text('index = "own_shelf:shelf://./kept"\n')
    refused = subprocess.run(
        [CRAG, "index", "kettle.md"], cwd=tmp_path, env=variables({}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "own_shelf:shelf': it cannot be imported" in " ".join(refused.stderr.split())
    assert not (tmp_path / "ran").exists()


def sentence(start: int, end: int, status: SentenceStatus) -> AnswerSentence:
    return AnswerSentence(start=start, end=end, strips=[], status=status)


def test_what_no_source_supports_is_named_and_markdown_is_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = r"Ada did. It \<b> rained, [\*b]."
    sentences = [sentence(0, 8, "cited"), sentence(9, len(said), "unsupported")]
    show({"question": "Who?", "answer": said, "outcome": "likely", "sentences": sentences})
    shown = capsys.readouterr().out
    assert "\nAda did. It <b> rained, [*b].\n" in shown
    assert "no source supports: It " in shown
    assert "supports: Ada did." not in shown
    assert shown.endswith("\nlikely\n")
