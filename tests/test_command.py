"""The entry point of the command: how a process ends that something outside has stopped."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from types import ModuleType

import pytest

from crag.papers.command import main
from tests.commands import CRAG, variables


@pytest.fixture(autouse=True)
def _output() -> Iterator[None]:
    """Put the output back, which a process that ends would throw away."""
    kept = os.dup(1)
    yield
    os.dup2(kept, 1)
    os.close(kept)


class Closed(StringIO):
    """Output whose reader has gone, or that a disk has no room for."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, _: str) -> int:
        raise self._error


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["crag", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code


def test_ctrl_c_while_the_command_line_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "crag.papers.cli", Interrupted("crag.papers.cli"))
    assert ended(monkeypatch, "--version") == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (OSError(28, "No space left on device"), 2, "Error: No space left on device\n"),
        (PermissionError(13, "Permission denied", "/a"), 2, "Error: Permission denied: /a\n"),
    ],
)
def test_output_that_nobody_takes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: OSError,
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(sys, "stdout", Closed(error))
    assert ended(monkeypatch, "--version") == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("closed", "coding"), [(">&-", "utf-8"), ("<&-", "utf-8"), ("", "ascii")])
def test_streams_that_are_closed_or_take_few_letters(closed: str, coding: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{CRAG} ask --json Why --set k=ß {closed}"], text=True, check=False,
        capture_output=True, env=variables({"PYTHONIOENCODING": coding}),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "")
    assert closed == ">&-" or "'ß'" in json.loads(done.stdout)["error"]["message"]
