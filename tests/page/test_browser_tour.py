"""The guide's tour, as it is written: from a fresh environment to an answer in the browser."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import Chat, chatting
from tests.light import ROOT, built, installed
from tests.page.asking import ask
from tests.page.serving import environment, free_port, printed, wait_for

pytestmark = pytest.mark.browser
TOUR = (ROOT / "docs" / "guide" / "tour.md").read_text("utf-8")
COMMANDS = re.findall(r"^\$ (.+)$", TOUR, re.MULTILINE)
ANSWER = "It leaves at seven in the morning"
QUESTION = "When does the ferry to Orrin leave?"
NOTES = {
    "ferry.md": "# Ferries\n\nThe ferry to Orrin leaves at seven in the morning.\n",
    "shops.txt": "Orrin has two bakeries. Both are closed on Mondays.\n",
}


@pytest.fixture(scope="module")
def model() -> Iterator[Chat]:
    """The user's own model, behind a server of their own."""
    with chatting({"<passages>": f"{ANSWER} [1]."}) as running:
        yield running


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that the tour begins in, with the folder of a user in it."""
    folder = tmp_path / "here"
    (folder / "notes").mkdir(parents=True)
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text, "utf-8")
    return folder


def install(folder: Path) -> None:
    """Do offline what the first commands do, which must be those that are known here."""
    wanted = [
        "python3 -m venv env",
        "env/bin/pip install -c CHECKOUT/constraints.txt 'CHECKOUT[serve]'",
    ]
    assert COMMANDS[:2] == wanted
    (wheel,) = (one for one in built(folder.parent) if one.suffix == ".whl")
    installed(wheel, folder / "env", extra="serve")


def variables(folder: Path) -> dict[str, str]:
    """A user's environment, whose browser writes down which address it is to open."""
    browser = folder.parent / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {folder.parent / "opened"}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    hub = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder.parent / "hub")}
    return environment(BROWSER=str(browser), **hub)


def run(command: str, folder: Path) -> str:
    done = subprocess.run(
        command.split(), cwd=folder, env=variables(folder), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def opened(file: Path) -> str:
    """Wait for the address that the browser was given."""
    for _ in range(100):
        if file.exists() and (address := file.read_text().strip()):
            return address
        time.sleep(0.1)
    raise AssertionError("the browser was not opened within ten seconds")


@contextmanager
def served(command: str, folder: Path) -> Iterator[str]:
    """Run the last command, and give the address that it opens in the browser."""
    port, log = free_port(), folder.parent / "serve.log"
    with (
        log.open("wb") as writing,
        subprocess.Popen(
            [*command.split(), "--port", str(port)], cwd=folder, env=variables(folder),
            stdout=writing, stderr=writing,
        ) as server,
    ):  # fmt: skip
        try:
            wait_for(f"http://127.0.0.1:{port}", server)
            address = printed(log)["Page"]
            assert opened(folder.parent / "opened") == address
            yield address
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
    assert server.returncode == 0


def test_from_nothing_to_an_answer_about_my_own_folder(
    here: Path, model: Chat, visit: Callable[..., Any]
) -> None:
    seconds: dict[str, float] = {}

    def timed(step: str, began: float) -> None:
        seconds[step] = time.monotonic() - began

    began = time.monotonic()
    install(here)
    timed("install, offline", began)
    index, doctor, serve = COMMANDS[2:]
    began = time.monotonic()
    assert "2 added" in run(index, here)
    timed("index", began)
    (toml,) = re.findall(r"```toml\n(.+?)```", TOUR, re.DOTALL)
    assert "http://127.0.0.1:11434/v1" in toml
    (here / "crag.toml").write_text(toml.replace("http://127.0.0.1:11434/v1", model.url))
    began = time.monotonic()
    assert "llama3.2" in run(doctor, here)
    timed("doctor", began)
    began = time.monotonic()
    with served(serve, here) as address:
        timed("serve", began)
        began = time.monotonic()
        page = visit(address)
        timed("page", began)
        began = time.monotonic()
        ask(page, QUESTION, until="#answer[data-phase=done]")
        timed("answer", began)
        assert ANSWER in page.inner_text("#answer-body")
        assert QUESTION in model.prompts[-1]
        page.locator("#answer .sources .opens").first.click()
        page.wait_for_selector("#source mark, #source .cited")
        cited = page.locator("#source .cited").all_inner_texts()
        assert "The ferry to Orrin leaves at seven in the morning." in " ".join(cited)
    told = ", ".join(f"{step} {took:.1f} s" for step, took in seconds.items())
    sys.stderr.write(f"\n{told}; {os.cpu_count()} cores\n")
