"""ARCHITECTURE.md names the files that a question passes."""

import re
import sys
import threading
from pathlib import Path
from types import FrameType

from langchain_core.documents import Document

import crag
from crag.graph import build_crag
from crag.parts import Parts
from crag.testing import FakeChatModel, FakeQuoter, FakeReadingEvaluator, FakeRetriever

ROOT = Path(__file__).parents[1]
FOLDERS = (Path(crag.__file__).resolve().parent, ROOT / "graph", ROOT / "nodes", ROOT / "prompts")
_OPTIMIZED = 2
"""Flag of a function's code; the body of a module or class does not have it."""


def files_entered(question: str) -> set[Path]:
    """Return the files of crag whose functions run for a Correct question, besides its fakes."""
    text = "Ada Lovelace wrote the first program."
    parts = Parts(
        retriever=FakeRetriever(documents=[Document(text, metadata={"source": "a"})]),
        evaluator=FakeReadingEvaluator(0.9, "Ada Lovelace"),
        model=FakeChatModel(replies=["Ada did [1]."]),
        quoter=FakeQuoter(),
    )
    graph, entered = build_crag(parts), set[str]()
    graph.invoke({"question": question})  # What is loaded once does not count.

    def profile(frame: FrameType, event: str, _: object) -> None:
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        is_of_fake = Path(caller).name == "testing.py"
        if event == "call" and frame.f_code.co_flags & _OPTIMIZED and not is_of_fake:
            entered.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        graph.invoke({"question": question})
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
    # An editable install links single files.
    paths = {Path(name).resolve() for name in entered if not name.startswith("<")}
    ours = {path for path in paths if any(path.is_relative_to(folder) for folder in FOLDERS)}
    return {path for path in ours if path.name != "testing.py"}


def test_a_question_passes_the_files_that_are_named() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text.partition("## Follow one question\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([\w/]+\.py)`", section))
    entered = files_entered("Who wrote the first program?")
    unnamed = [path for path in entered if not any(path.match(name) for name in named)]
    assert unnamed == []
    assert [name for name in named if not any(path.match(name) for path in entered)] == []
    assert f"A profiler counts {len(entered)} files" in section
