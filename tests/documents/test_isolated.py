"""Files are read in a process of their own: what it may take, and what becomes of it."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from docx import Document as WordDocument

from crag.documents.isolated import IsolatedReader, Limits
from crag.documents.loaders import load
from crag.documents.sources import SourceText, Unusable
from tests.commands import heeds_ctrl_c

PAGE = "<title>Light</title><h1>Merrow</h1><p>Edith Halloran built it.</p>"
SLOW = "* a\n\n" * 100_000
"""Is reStructuredText for which docutils takes far more than a second."""


@pytest.fixture
def reader() -> Iterator[IsolatedReader]:
    with IsolatedReader() as opened:
        yield opened


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


def reason(reader: IsolatedReader, path: Path) -> str:
    *_, last = reader.read(path)
    assert isinstance(last, Unusable), last
    return last.reason


def children() -> set[int]:
    """Return the processes of this one that read files."""
    started = psutil.Process().children()
    return {one.pid for one in started if "crag.documents.isolated" in one.cmdline()}


def test_what_is_read_is_what_the_loaders_read(reader: IsolatedReader, tmp_path: Path) -> None:
    word = WordDocument()
    word.add_heading("Merrow 🌊", 1)
    word.add_paragraph("Edith Halloran built it. " * 200)
    word.save(str(tmp_path / "a.docx"))
    (tmp_path / "b.html").write_text(PAGE)
    (tmp_path / "c.rst").write_text(
        "Merrow\n======\n\nEdith \ud83d built it.\n", "utf-8", "replace"
    )
    (tmp_path / "d.csv").write_text("id,text\n1,Ada\n2,\n3,Kettle\n")
    (tmp_path / "e.pdf").write_bytes(b"%PDF-1.7 nothing")
    (tmp_path / "f.html").write_text("<ul><li>Halloran built it" * 100)
    for path in sorted(tmp_path.iterdir()):
        assert list(reader.read(path)) == list(load(path))
    assert len(children()) == 1


def test_a_file_has_its_time(page: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow.rst"
    slow.write_text(SLOW)
    with IsolatedReader(Limits(seconds=1)) as reader:
        told = reason(reader, slow)
        assert told == "reading it takes more than 1 seconds: split it, or raise CRAG_READ_SECONDS"
        assert isinstance(next(reader.read(page)), SourceText)


def test_a_file_has_its_memory(tmp_path: Path) -> None:
    (tmp_path / "deep.jsonl").write_text('{"text": "a"}\n{"text": [' + "[]," * 10_000_000 + "[]]}")
    with IsolatedReader(Limits(megabytes=400)) as reader:
        told = reason(reader, tmp_path / "deep.jsonl")
    assert "takes more memory than CRAG_READ_MEGABYTES allows" in told


def test_the_process_ends_with_its_reader_and_knows_no_keys(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-mine")
    monkeypatch.setenv("CRAG_SERVE_TOKEN", "a-token-of-mine")
    with IsolatedReader() as reader:
        assert list(reader.read(page))
        (pid,) = children()
        told = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"PATH=" in told
        assert b"of-mine" not in told
    assert not psutil.pid_exists(pid)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_its_caller(tmp_path: Path, ending: signal.Signals) -> None:
    (tmp_path / "slow.rst").write_text(SLOW)
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from crag.documents.isolated import IsolatedReader, Limits\n"
        "list(IsolatedReader(Limits(seconds=9)).read(Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "slow.rst")]
    with subprocess.Popen(
        command, stderr=subprocess.DEVNULL,
        preexec_fn=heeds_ctrl_c,  # noqa: PLW1509 - no thread of ours runs yet
    ) as caller:  # fmt: skip
        process = psutil.Process(caller.pid)
        started = _first_child(process)
        time.sleep(0.5)
        assert started.is_running()
        caller.send_signal(ending)
        caller.wait(20)
    psutil.wait_procs([started], timeout=20)
    assert not started.is_running() or started.status() == psutil.STATUS_ZOMBIE


def _first_child(process: psutil.Process) -> psutil.Process:
    for _ in range(600):
        if found := process.children():
            return found[0]
        time.sleep(0.05)
    raise AssertionError("no process was started")
