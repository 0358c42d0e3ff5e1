"""Take the pictures of the page for the guide: `python -m tests.page.pictures`."""

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from tests.page.asking import ask
from tests.page.chromium import launched
from tests.page.serving import ROOT, serving_guide

FOLDER = ROOT / "docs" / "pictures"
QUESTION = "What happens when every retrieved document scores below the lower threshold?"
PICTURES: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 1180}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 1180}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 1180}},
}
_COLOURS = 192


def take(page: Any, file: Path) -> None:
    """Save what is in view, with few colours: pictures are part of every clone."""
    page.wait_for_timeout(800)
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    shot.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE).save(file, optimize=True)


def main() -> None:
    """Ask the guide, and take a picture in light, dark and narrow, and of the critiques."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_guide(Path(folder)) as url,
        launched() as browser,
    ):
        for name, options in PICTURES.items():
            page = browser.new_page(**options)
            page.goto(url)
            page.wait_for_selector(".node")
            ask(page, QUESTION)
            page.focus("#answer")
            page.evaluate("scrollTo(0, 0)")
            take(page, FOLDER / f"page-{name}.png")
        page = browser.new_page(**PICTURES["dark"])
        page.goto(f"{url}&graph=self_rag")
        page.wait_for_selector(".node")
        ask(page, QUESTION)
        page.evaluate("document.getElementById('answer').scrollIntoView()")
        page.focus("#answer")
        take(page, FOLDER / "page-critiques.png")


if __name__ == "__main__":
    main()
