"""What axe-core says of a page."""

from importlib.resources import files
from typing import Any


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
