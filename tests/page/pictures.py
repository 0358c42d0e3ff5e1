"""Take pictures and recordings of the page: `make pictures`.

With a folder of your own: `python -m tests.page.pictures FOLDER QUESTION…`. Both are taken in light
and in dark. Take them on an idle machine: the page shows how long a run took. The first runs load
the models and are not shown.
"""

import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from tests.page.asking import ask
from tests.page.chromium import launched
from tests.page.serving import ROOT, serving_guide

FOLDER = ROOT / "docs" / "pictures"
TALL = {"width": 1280, "height": 1180}
PICTURES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": TALL},
    "dark": {"color_scheme": "dark", "viewport": TALL},
    "narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 1180}},
}
SIZE = {"width": 1200, "height": 800}
"""Of the recording."""
_COLOURS = 192
_FRAME, _LAST = 200, 2500
"""Milliseconds that a picture of the recording is shown, and the last one of a scene."""
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
      for (const {thread_id} of await server.threads()) await server.removeThread(thread_id);
    }""")
    page.reload()
    page.wait_for_selector("#library:not([hidden])")


def ask_quickly(page: Any, question: str) -> None:
    """Ask until a run is as fast as on an idle machine."""
    ask(page, question)
    for _ in range(_TRIES - 1):
        if page.evaluate("parseFloat(document.querySelector('#numbers dd').textContent)") < _FAST:
            return
        forget(page)
        ask(page, question)


class Film:
    """Pictures of a page, one after the other."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.pictures: list[Image.Image] = []
        self.times: list[int] = []

    def shoot(self, milliseconds: int = _FRAME) -> None:
        """Add what is in view, to be shown that long."""
        shot = Image.open(BytesIO(self.page.screenshot())).convert("RGB")
        half = shot.resize((shot.width * 3 // 4, shot.height * 3 // 4), Image.Resampling.LANCZOS)
        self.pictures.append(half.quantize(64, dither=Image.Dither.NONE))
        self.times.append(milliseconds)

    def save(self, file: Path) -> None:
        """Write a GIF that repeats."""
        first, *others = self.pictures
        first.save(
            file, save_all=True, append_images=others, duration=self.times, loop=0, optimize=True
        )


def record(page: Any, questions: tuple[str, ...]) -> Film:
    """Ask one question after the other, and open what the last answer rests on."""
    film = Film(page)
    for question in questions:
        for part in range(0, len(question), 12):
            page.fill("#question", question[: part + 12])
            film.shoot(120)
        page.press("#question", "Enter")
        while page.get_attribute("#answer", "data-phase") == "running":
            film.shoot()
        page.wait_for_timeout(300)
        film.shoot(_LAST)
    page.evaluate("document.getElementById('answer').scrollIntoView()")
    page.wait_for_timeout(800)
    film.shoot(_LAST)
    page.click("#answer .sources .opens")
    page.wait_for_selector("#source .focus")
    page.wait_for_timeout(300)
    film.shoot(_LAST)
    return film


def main(documents: Path, questions: tuple[str, ...]) -> None:
    """Take a picture in light, dark and narrow, of the critiques and of a source; record a chat."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_guide(Path(folder), documents=documents) as url,
        launched() as browser,
    ):
        for name, options in PICTURES.items():
            page = opened(browser, url, **options)
            ask_quickly(page, questions[0])
            if name == "dark":
                page.click("#way-line")  # One picture shows the graph.
            page.focus("#answer")
            page.evaluate("scrollTo(0, 0)")
            take(page, FOLDER / f"page-{name}.png")
        page = opened(browser, url, color_scheme="light", viewport=TALL | {"height": 800})
        ask_quickly(page, questions[0])
        page.click("#answer .sources .opens")
        page.wait_for_selector("#source .focus")
        take(page, FOLDER / "page-source.png")
        for scheme in ("light", "dark"):
            page = opened(browser, url, color_scheme=scheme, viewport=SIZE)
            record(page, questions).save(FOLDER / f"page-{scheme}.gif")
        page = opened(browser, f"{url}&graph=self_rag", **PICTURES["dark"])
        page.wait_for_selector(".node", state="attached")
        ask_quickly(page, questions[0])
        page.evaluate("document.getElementById('answer').scrollIntoView()")
        page.focus("#answer")
        take(page, FOLDER / "page-critiques.png")


if __name__ == "__main__":
    own, *asked = sys.argv[1:]
    main(Path(own), tuple(asked))
