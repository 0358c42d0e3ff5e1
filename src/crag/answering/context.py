"""Compose the kept strips into what a model reads, as data that cannot pose as instructions."""

from collections.abc import Sequence

from crag.correction.strips import recompose
from crag.state import Citation, State, Strip, strips_of_kind
from crag.text.untrusted import neutral


def kept_strips(state: State) -> list[Strip]:
    """Return the kept strips, those of documents before those of the web (CRAG, Algorithm 1)."""
    return recompose([*strips_of_kind(state, "document"), *strips_of_kind(state, "web")])


def numbered(strips: Sequence[Strip]) -> list[Citation]:
    """Number the strips from 1, as the answer cites them."""
    return [
        Citation(number=number, text=strip["text"], source=strip["source"])
        for number, strip in enumerate(strips, start=1)
    ]


def fenced(strips: Sequence[Strip]) -> str:
    """Write each strip between tags that its own text cannot close, with its number and title."""
    return "\n".join(
        f'<passage number="{entry["number"]}" title="{_attribute(entry["source"]["title"])}">\n'
        f"{neutral(entry['text'])}\n</passage>"
        for entry in numbered(strips)
    )


def _attribute(text: str) -> str:
    return neutral(" ".join(text.split())).replace('"', "'").replace(">", "›").replace("<", "‹")
