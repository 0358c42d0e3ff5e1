"""What the browser tests do again and again: start the browser and a server, ask, look."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.commands import CRAG, variables
from tests.serve.serving import free_port

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run"]
QUIET += ["disable-background-networking", "disable-component-update", "disable-sync"]
NAMED = ("evil.test", "rebind.test", "api")
"""Names that lead to this machine, as a hostile name server has them do."""
QUIET.append(f"host-resolver-rules={','.join(f'MAP {name} 127.0.0.1' for name in NAMED)}")


def executable() -> str:
    """Return the browser that CRAG_TEST_BROWSER names, or the first Chromium on the path."""
    named = os.environ.get("CRAG_TEST_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(
            "no browser: install Chromium (Debian: apt-get install chromium), or name one in "
            "CRAG_TEST_BROWSER"
        )
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser without a screen, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=executable(), args=[f"--{name}" for name in QUIET]
        )
        yield browser
        browser.close()


ROOT = Path(__file__).parents[2]


@contextmanager
def serving_guide(folder: Path, documents: Path = ROOT / "docs") -> Iterator[str]:
    """Serve documents, our own guide, as a user would, from another folder, with `crag serve`.

    Yield the address of the page, as it was printed.
    """
    index = [CRAG, "index", documents, "--index", folder / "index"]
    subprocess.run(index, check=True, capture_output=True)
    command, log = [CRAG, "serve", "--index", "index", "--port", str(free_port())], folder / "log"
    with (
        log.open("wb") as writing,
        subprocess.Popen(command, cwd=folder, env=variables({}), stdout=writing) as server,
    ):
        try:
            yield printed(log, server)
        finally:
            server.terminate()
            server.wait(20)


def printed(log: Path, server: "subprocess.Popen[bytes]") -> str:
    """Return the address of the page that `crag serve` prints once it is there."""
    for _ in range(600):
        assert server.poll() is None, "the server stopped"
        text = log.read_text("utf-8")
        if "Ctrl-C" in text:
            return re.findall(r"^Page +(\S+)", text, re.MULTILINE)[0]
        time.sleep(0.2)
    raise AssertionError(text)


ENDED = ".turn:last-child:not([data-phase=running], [data-phase=waiting])"
LAST = ".turn:last-child"


def ask(page: Any, question: str, *, until: str = ENDED) -> None:
    """Ask with the keyboard, and wait until the page shows `until`."""
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.locator(until).first.wait_for(timeout=60_000)  # A handle would keep what it finds.


def phase(page: Any) -> str:
    """Return the verdict on the last question, or how far it is."""
    return str(page.get_attribute(LAST, "data-phase"))


def open_basis(page: Any) -> Any:
    """Open what the last answer rests on, with all that is folded in it, and return it."""
    page.evaluate(f"document.querySelector('{LAST} .basis').open = true")
    page.wait_for_selector(f"{LAST} .numbers")
    opened = """() => {
      const folded = [...document.querySelectorAll(".turn:last-child .panels details:not([open])")];
      folded.forEach((one) => one.open = true);
      return folded.length === 0;
    }"""
    page.wait_for_function(opened, polling=100)
    return page.locator(f"{LAST} .panels")


def set_setting(page: Any, **values: str | bool) -> None:
    """Change settings in their form, and apply them."""
    page.click("#open-settings")
    for name, value in values.items():
        field = page.locator(f"#settings [name={name}]")
        if isinstance(value, bool):
            field.set_checked(value)
        else:
            field.fill(value)
    page.click("#settings button[type=submit]")


def violations(page: Any) -> list[str]:
    """Return what axe-core finds, of any weight, with the element it found."""
    page.wait_for_timeout(400)  # Colours have settled.
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run().then(({violations}) => violations)")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:120]}"
        for one in found
        for node in one["nodes"]
    ]
