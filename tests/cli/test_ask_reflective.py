"""`crag ask --method self-rag|self-crag` on the guide, offline, with the embedded default."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from crag.cli.critique import CritiqueTrace
from crag.state import Choice
from tests import commands

ROOT = Path(__file__).parents[2]
QUESTION = "What happens when every retrieved document scores below the lower threshold?"
ELSEWHERE = "Who won the chess world championship in 1972?"
METHODS = pytest.mark.parametrize("method", ["self-rag", "self-crag"])
FORMS = pytest.mark.parametrize("form", ["short", "long"])


def crag(*arguments: str, code: int = 0) -> str:
    command, *others = arguments
    fewer = ("--set", "k=3") if command == "ask" else ()  # Each passage is read several times.
    done = commands.crag(command, *fewer, *others, folder=ROOT)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    location = str(tmp_path_factory.mktemp("reflective") / "index")
    method = ROOT / "docs" / "method"
    crag("index", str(method / "action.md"), str(method / "overview.md"), "--index", location)
    return location


@METHODS
@FORMS
def test_the_answer_comes_with_its_critique(index: str, method: str, form: str) -> None:
    told = crag("ask", QUESTION, "--method", method, "--set", f"form={form}", "--index", index)
    assert "the action is Incorrect" in told
    assert "docs/method/" in told.rsplit("[1]", maxsplit=1)[-1]
    assert "retrieve   1.000 is above 0.2" in told
    assert all(name in told for name in ("IsRel", "IsSup", "IsUse", "score", "why"))
    assert told.count("approximation") >= 2


@METHODS
def test_what_the_documents_do_not_hold_is_not_answered(index: str, method: str) -> None:
    told = crag("ask", ELSEWHERE, "--method", method, "--index", index, code=4)
    assert "I could not find this in the documents." in told
    assert "abstained" in told


def test_the_trace_as_json_holds_every_critique(index: str) -> None:
    said = crag("ask", QUESTION, "--method", "self-crag", "--json", "--index", index)
    trace = json.loads(said)
    assert trace["method"] == "self-crag"
    assert trace["action"] == "correct"
    assert [passage["label"] for passage in trace["passages"]] == ["correct"]
    assert trace["approximation"]
    assert trace["choices"][0]["action"] == "retrieve"
    (critique,) = trace["critiques"]
    assert critique["chosen"]
    assert set(critique["probabilities"]) == {"relevance", "support", "utility"}
    assert trace["reflection"]["score"] == critique["total"]


def test_verbose_shows_candidates_without_text(index: str) -> None:
    arguments = ("ask", QUESTION, "--method", "self-rag", "--set", "k=10", "--index", index)
    assert "without text: it is empty" in crag(*arguments)
    verbose = crag(*arguments, "--verbose")
    assert "without text" not in verbose
    assert "it is empty" in verbose


def test_the_posters_rule_needs_grades(index: str) -> None:
    poster = ("--set", "form=poster", "--index", index)
    assert "(high)" in crag("ask", QUESTION, "--method", "self-crag", *poster)
    done = commands.crag("ask", QUESTION, "--method", "self-rag", *poster, folder=ROOT)
    assert done.returncode == 2
    assert "setting 'form' cannot be 'poster'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_with_the_tokens_is_no_approximation() -> None:
    console = Console(file=io.StringIO(), width=200)
    trace = CritiqueTrace(console)
    why = "0.900 is above 0.2"
    choices = [Choice(segment=0, action="retrieve", why=why)]  # type: ignore[typeddict-item]
    trace.decide({"choices": choices, "approximation": ""})
    assert console.file.getvalue() == f"decide    retrieve   {why}\n"  # type: ignore[attr-defined]
    trace.decide({"choices": choices, "approximation": "critiques are neutral"})
    assert "approximation: critiques are neutral" in console.file.getvalue()  # type: ignore[attr-defined]
