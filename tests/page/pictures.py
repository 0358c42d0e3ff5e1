"""Take the pictures of README: `python -m tests.page.pictures FOLDER QUESTION`.

Take them on an idle machine: the page shows how long an answer took.
"""

import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from tests.page.asking import LAST, ask
from tests.page.chromium import launched
from tests.page.serving import ROOT, serving_guide

FOLDER = ROOT / "docs" / "pictures"
TALL = {"width": 1280, "height": 1180}
_COLOURS = 192
_SECONDS = "parseFloat(/, ([0-9.]+) s/.exec(document.querySelector('.way').textContent)?.[1] ?? 0)"
_TRIES, _FAST = 8, 2.5
"""How often a question is asked until its run takes no longer than that, in seconds."""


def take(page: Any, file: Path) -> None:
    """Save what is in view, with few colours: pictures are part of every clone."""
    page.wait_for_timeout(800)
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    shot.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE).save(file, optimize=True)


def opened(browser: Any, url: str, **options: Any) -> Any:
    """Open the page without conversations, which earlier pictures have left on the server."""
    page = browser.new_page(**options)
    page.goto(url)
    forget(page)
    return page


def forget(page: Any) -> None:
    """Delete all conversations, and open the page anew."""
    page.evaluate("""async () => {
      const main = document.querySelector("script[type=module]").src;
      const server = await import(new URL("server.js", main));
      for (const {thread} of await server.threads()) await server.removeThread(thread);
    }""")
    page.click("#new")
    page.reload()
    page.wait_for_selector("#library:not([hidden])", state="attached")


def ask_quickly(page: Any, question: str) -> None:
    """Ask until a run is as fast as on an idle machine."""
    ask(page, question)
    for _ in range(_TRIES - 1):
        if page.evaluate(_SECONDS) < _FAST:
            return
        forget(page)
        ask(page, question)


def main(documents: Path, question: str) -> None:
    """Take a picture in light, and one in dark with the graph."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_guide(Path(folder), documents=documents) as url,
        launched() as browser,
    ):
        for scheme in ("light", "dark"):
            page = opened(browser, url, color_scheme=scheme, viewport=TALL)
            ask_quickly(page, question)
            if scheme == "dark":
                page.click(f"{LAST} .way summary")
            page.evaluate("scrollTo(0, 0)")
            take(page, FOLDER / f"page-{scheme}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
