"""`crag chat`: follow-ups, sources, and what Ctrl-C ends."""

import fcntl
import signal
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from tests.commands import CRAG, crag, heeds_ctrl_c, variables
from tests.loopback import serving, streamed

ASKED = "How do I remove limescale from the kettle?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chat")
    (folder / "kettle.md").write_text(
        "# Kettles\n\nA kettle boils water in three minutes.\n\n## Care\n\n"
        "Remove limescale from the kettle with vinegar once a month.\n"
    )
    assert crag("index", "kettle.md", folder=folder).returncode == 0
    return folder


def test_a_follow_up_carries_the_question_before_it_and_answers_have_sources(folder: Path) -> None:
    done = crag("chat", folder=folder, answer=f"{ASKED}\n\nand how often?\n")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.split("question  ")
    assert "Remove limescale from the kettle with vinegar once a month." in first
    assert "kettle.md, line" in first
    assert second.startswith(f"{ASKED} and how often?\n")
    assert "once a month" in second
    assert "strip" not in done.stdout


def test_a_question_that_cannot_be_asked_does_not_end_the_chat(folder: Path) -> None:
    done = crag("chat", folder=folder, answer=f"{'x' * 10_000}\n{ASKED}\n")
    assert "the limit is 8,000" in done.stderr
    assert "with vinegar once a month" in done.stdout


@pytest.mark.parametrize("word", ["exit", "Quit!", "/exit", "/quit"])
def test_a_word_ends_the_chat(folder: Path, word: str) -> None:
    done = crag("chat", folder=folder, answer=f"{word}\n{ASKED}\n")
    assert done == ("", "", 0)


def test_commands_are_obeyed_and_not_asked(folder: Path) -> None:
    lines = "/help\n/boils the kettle water?\n/sources\n"
    done = crag("chat", folder=folder, answer=lines)
    told, answer = done.stdout.split("Ctrl-C ", 1)
    assert told.startswith("QUESTION ")
    assert "exit, quit " in told
    assert "A kettle boils water in three minutes." in answer
    assert answer.count("kettle.md, line") == 2  # Below the answer, and by /sources.


def test_ctrl_c_cancels_the_answer_and_then_ends_the_chat(folder: Path) -> None:
    with serving(streamed("With vinegar [2].")) as server:
        server.seconds = 600
        names = {"OPENAI_BASE_URL": f"{server.url}/v1", "CRAG_MODEL": "local"}
        with subprocess.Popen(
            [CRAG, "chat"], cwd=folder, env=variables(names), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=heeds_ctrl_c,  # noqa: PLW1509 - no thread of ours runs yet
        ) as chat:  # fmt: skip
            guard = threading.Timer(200, chat.kill)
            guard.start()
            assert chat.stdin is not None
            assert chat.stdout is not None
            chat.stdin.write(f"{ASKED}\n")
            chat.stdin.flush()
            assert server.asked.wait(200)
            chat.send_signal(signal.SIGINT)
            shown = _read_until("cancelled", chat.stdout)
            server.seconds = 0
            chat.stdin.write("What removes limescale from a kettle?\n")
            chat.stdin.flush()
            shown += _read_until("kettle.md, line", chat.stdout)
            chat.stdin.write("\n")
            chat.stdin.flush()
            _await_reading(chat)  # Until then, Ctrl-C cancels the end of the answer.
            chat.send_signal(signal.SIGINT)
            shown += chat.stdout.read()
            guard.cancel()
    assert chat.returncode == 0
    assert "With vinegar [1]." in shown
    assert "Traceback" not in shown


def _await_reading(process: "subprocess.Popen[str]") -> None:
    """Wait until a process has read all that was written to it."""
    assert process.stdin is not None
    while any(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4))):
        assert process.poll() is None
        time.sleep(0.01)


def _read_until(words: str, output: IO[str]) -> str:
    """Read lines up to the first that holds the words."""
    shown = ""
    for line in output:
        shown += line
        if words in line:
            return shown
    pytest.fail(f"{words!r} was not shown, but:\n{shown}")
