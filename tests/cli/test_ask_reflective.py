"""`crag ask --method self-rag|self-crag` on the guide, offline, with the embedded default."""

from pathlib import Path

import pytest

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
    crag("index", str(method / "crag.md"), str(method / "evaluator.md"), "--index", location)
    return location


@METHODS
@FORMS
def test_the_answer_comes_with_its_critique(index: str, method: str, form: str) -> None:
    told = crag(
        "ask", QUESTION, "--trace", "--method", method, "--set", f"form={form}", "--index", index
    )
    assert "documents are discarded" in told
    assert "docs/method/" in told.rsplit("[1]", maxsplit=1)[-1]
    assert "segment 1: retrieve, 1.000 is above 0.2" in told
    assert all(name in told for name in ("relevance", "support", "utility", "approximation"))


def test_the_posters_rule_needs_grades(index: str) -> None:
    poster = ("--set", "form=poster", "--index", index)
    assert "documents are discarded" in crag("ask", QUESTION, "--method", "self-crag", *poster)
    done = commands.crag("ask", QUESTION, "--method", "self-rag", *poster, folder=ROOT)
    assert done.returncode == 2
    assert "setting 'form' cannot be 'poster'" in done.stderr
    assert "Traceback" not in done.stderr
