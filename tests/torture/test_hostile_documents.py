"""Files that attack: reading them is bounded, and what readers do not see reaches nobody."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.answering.context import fenced
from crag.documents.loaders import load
from crag.documents.sources import Unusable
from crag.graph import build_rag
from crag.parts import Parts
from crag.state import strips_of_kind
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever
from tests.commands import crag
from tests.repeating import times
from tests.torture.documents import FACT, FILES, SECRET
from tests.torture.telling import tell

ACTS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|<\|im_start|\[7\]"
)
"""What acts in a terminal or a prompt."""
REFUSED = {
    "bomb.docx": "its XML unpacks to",
    "bomb.epub": "its XML unpacks to",
    "cut.pdf": "damaged PDF",
    "deep.eml": "damaged, or not what it seems",
    "deep.html": "nest deeper",
    "deep.ipynb": "not a Jupyter notebook",
    "deep.jsonl": "line 1: not JSON",
    "entities.docx": "not a DOCX file",
    "long.csv": "field larger than field limit",
    "loop.pdf": "damaged PDF",
    "nul.csv": "NUL bytes",
    "odd.ipynb": "not a Jupyter notebook",
    "stream.pdf": "no text in it",
}
"""Files without any text that can be used, with words of the reason."""
LARGE = {
    *("bomb.docx", "bomb.epub", "stream.pdf", "attributes.html", "deep.rst", "deep.eml"),
    *("deep.html", "wide.html", "wide.csv", "long.csv", "fact.ipynb"),
}
"""Left to `make test-nightly`: it takes seconds to make and to read them."""
NAMES = [name for name in FILES if times(0, 1) or name not in LARGE]
SECONDS, MEGABYTES = 20.0, 1500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile")
    for name in NAMES:
        (path / name).write_bytes(FILES[name]())
    return path


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, Any]:
    """Read all files in a process of its own, whose memory is its own."""
    program = Path(__file__).with_name("reading_files.py")
    command = [sys.executable, str(program), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_file_is_read_or_refused_within_bounds(
    outcomes: dict[str, Any], name: str
) -> None:
    outcome = outcomes[name]
    assert outcome["seconds"] < SECONDS
    assert outcome["megabytes"] < MEGABYTES
    assert SECRET not in outcome["text"]
    assert all("\n" not in reason and len(reason) < 200 for reason in outcome["reasons"])
    if name in REFUSED:
        assert outcome["text"] == ""
        assert REFUSED[name] in outcome["reasons"][0]
    else:
        assert outcome["text"]


def test_the_counts_are_told(outcomes: dict[str, Any]) -> None:
    seconds = sum(outcome["seconds"] for outcome in outcomes.values())
    most = max(outcome["megabytes"] for outcome in outcomes.values())
    tell(f"{len(outcomes)} hostile files, {seconds:.1f} s, at most {most} MB")
    assert set(outcomes) == set(NAMES)


def test_nothing_of_them_acts_in_a_prompt(folder: Path) -> None:
    documents = []
    for name in ("hidden.docx", "hidden.html", "odd.jsonl", "orders.md"):
        for loaded in load(folder / name):
            if not isinstance(loaded, Unusable):
                about = {"title": loaded.title, "source": loaded.source}
                documents.append(Document(loaded.text, metadata=about))
    model = FakeChatModel(replies=["Edith Halloran [1]."])
    retriever = FakeRetriever(documents=documents)
    graph: Any = build_rag(Parts(retriever=retriever, evaluator=FakeEvaluator(), model=model))
    state = graph.invoke({"question": "Who designed the lighthouse?"})
    prompt = "\n".join(str(message.content) for message in model.prompts[-1])
    assert prompt.count(FACT) == sum(FACT in one.page_content for one in documents) == 4
    assert SECRET not in prompt
    assert ACTS.findall(prompt) == []
    assert fenced(strips_of_kind(state, "document")).count("<passage ") == len(documents)


@pytest.mark.slow
def test_nothing_of_them_acts_on_the_terminal(folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    small = [path for path in folder.iterdir() if path.stat().st_size < 10_000]
    done = crag("index", *small, "--index", index, "--verbose")
    asked = crag(
        "ask", "Who designed the lighthouse of Cape Merrow?", "--index", index, "--verbose"
    )
    assert (done.returncode, asked.returncode) == (0, 0)
    assert "Edith Halloran" in asked.stdout
    for shown in (done.stdout, done.stderr, asked.stdout, asked.stderr):
        assert SECRET not in shown
        assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) == []
