"""A machine that refuses: a full disk, no home, a closed pipe, Ctrl-C at any moment."""

import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import CRAG, Done, crag, heeds_ctrl_c, variables
from tests.repeating import times

pytestmark = pytest.mark.nightly

QUESTION = "Who designed the lighthouse of Cape Merrow?"
INTERRUPTED = {130, -signal.SIGINT}
"""A shell shows 130 for both; Python itself no longer catches the signal while it shuts down."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with documents, and with the index of one of them."""
    path = tmp_path_factory.mktemp("machine")
    for number in range(3):
        folder = path / f"documents{number}"
        folder.mkdir()
        words = " ".join(map(str, range(2000)))
        text = f"The lighthouse of Cape Merrow, number {number}, is by Edith Halloran. {words}"
        (folder / "light.txt").write_text(text, "utf-8")
    assert crag("index", path / "documents0", "--index", path / "index").returncode == 0
    return path


def started(
    *arguments: str | Path,
    home: Path,
    prepare: Callable[[], None] | None = None,
    without: tuple[str, ...] = (),
    output: int = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    kept = {name: value for name, value in variables({}).items() if name not in without}
    command = [str(CRAG), *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=home, env=kept, stdout=output, stderr=subprocess.PIPE, text=True,
        preexec_fn=prepare,  # noqa: PLW1509 - no thread of ours runs yet
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> Done:
    out, err = process.communicate(timeout=300)
    return Done(out or "", err, process.returncode)


def is_one_line(text: str) -> bool:
    """Say whether nothing but a message of a few wrapped lines is told, without a trace."""
    return "Traceback" not in text and text.strip().count("\n") <= 3


def files_of(size: int) -> Callable[[], None]:
    """Let no file grow beyond a size, as on a disk that fills up."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_index_stays_whole(home: Path) -> None:
    small = home / "small"
    for size in [20_000, 100_000, 170_000][: times(1, 3)]:
        done = ended(
            started("index", "documents1", "--index", small, home=home, prepare=files_of(size))
        )
        if done.returncode:
            assert done.returncode == 2
            assert "disk" in done.stderr
            assert "delete the folder" not in done.stderr
            assert is_one_line(done.stderr)
    assert crag("index", home / "documents1", "--index", small).returncode == 0


@pytest.mark.slow
def test_output_that_cannot_be_written_is_one_line(home: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        process = started("list", "--index", "index", home=home, output=full.fileno())
        done = ended(process)
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device\n")


@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_error(home: Path) -> None:
    process = started("list", "--index", "index", home=home)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as complaints:
        assert complaints.read() == ""
    assert process.wait(300) == 1


@pytest.mark.slow
def test_ctrl_c_at_any_moment_ends_without_a_trace(home: Path) -> None:
    draw, index = random.Random(22), home / "interrupted"  # noqa: S311 - tests repeat
    moments = times(1, 10)
    codes: list[int] = []
    longest = 0.5
    if moments > 2:
        start = time.monotonic()
        assert ended(started("ask", QUESTION, "--index", "index", home=home)).returncode == 0
        longest = time.monotonic() - start
    for number in range(moments):
        arguments = ("ask", QUESTION, "--index", "index")
        if number % 2:
            arguments = ("index", f"documents{number % 3}", "--index", str(index))
        process = started(*arguments, home=home, prepare=heeds_ctrl_c)
        _wait_until_loading(process)
        time.sleep(draw.random() * longest)
        process.send_signal(signal.SIGINT)
        done = ended(process)
        codes.append(done.returncode)
        assert done.returncode in INTERRUPTED | {0}, done
        assert is_one_line(done.stderr), done.stderr
    assert sum(code in INTERRUPTED for code in codes) > moments // 4
    assert crag("index", home / "documents1", "--index", index).returncode == 0


def _wait_until_loading(process: subprocess.Popen[str]) -> None:
    """Wait until the command line is being loaded; before that, Python itself is interrupted."""
    maps, until = Path(f"/proc/{process.pid}/maps"), time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if "_pydantic_core" in maps.read_text():
            return
        time.sleep(0.01)
