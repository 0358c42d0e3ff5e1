"""Files that attack: reading them is bounded, and what readers do not see reaches nobody."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.answering.context import fenced
from crag.documents.isolated import IsolatedReader, Limits
from crag.documents.loaders import load
from crag.documents.sources import Unusable
from crag.graph import build_rag
from crag.parts import Parts
from crag.state import strips_of_kind
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever
from tests.commands import crag
from tests.repeating import times
from tests.torture.documents import FACT, FILES, SECRET

ACTS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|<\|im_start|\[7\]"
)
"""What acts in a terminal or a prompt."""
REFUSED = {
    "bomb.docx": "its XML unpacks to",
    "bomb.epub": "its XML unpacks to",
    "cut.pdf": "damaged PDF",
    "deep.html": "nest deeper",
    "deep.ipynb": "not a Jupyter notebook",
    "deep.jsonl": "record 1: not JSON",
    "entities.docx": "not a DOCX file",
    "long.csv": "field larger than field limit",
    "loop.pdf": "damaged PDF",
    "nul.csv": "looks binary",
    "stream.pdf": "no text in it",
}
"""Files without any text that can be used, with words of the reason."""
LARGE = {
    *("bomb.docx", "bomb.epub", "stream.pdf", "attributes.html", "deep.rst"),
    *("deep.html", "wide.html", "wide.csv", "long.csv", "fact.ipynb"),
}
"""Left to `make test-nightly`: it takes seconds to make and to read them."""
NAMES = [name for name in FILES if times(0, 1) or name not in LARGE]
SECONDS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile")
    for name in NAMES:
        (path / name).write_bytes(FILES[name]())
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_file_is_read_or_refused_within_bounds(folder: Path, name: str) -> None:
    """By the process that reads files for everybody, which bounds time and memory."""
    texts, reasons, start = "", [], time.monotonic()
    with IsolatedReader(Limits(seconds=SECONDS)) as reader:
        for loaded in reader.read(folder / name):
            if isinstance(loaded, Unusable):
                reasons.append(loaded.reason)
            else:
                texts += f"{loaded.title}\n{loaded.text}"
    assert time.monotonic() - start < 2 * SECONDS
    assert SECRET not in texts
    assert all("\n" not in reason and len(reason) < 300 for reason in reasons)
    if name in REFUSED:
        assert texts == ""
        assert REFUSED[name] in reasons[0]
    else:
        assert texts


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
    done = crag("index", *small, "--index", index)
    asked = crag("ask", "Who designed the lighthouse of Cape Merrow?", "--index", index, "--trace")
    assert (done.returncode, asked.returncode) == (0, 0)
    assert "Edith Halloran" in asked.stdout
    for shown in (done.stdout, done.stderr, asked.stdout, asked.stderr):
        assert SECRET not in shown
        assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) == []
