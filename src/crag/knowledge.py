"""Compose the kept strips into what a model reads, as data that cannot pose as instructions."""

import re
from collections.abc import Sequence

from crag.settings import Settings
from crag.state import Citation, State, Strip
from crag.strips import recompose

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_FENCE = re.compile(r"<\s*/?\s*(passages?|question)\b", re.IGNORECASE)
_BRACKETED_NUMBER = re.compile(r"\[(\d+(?:\s*[,–-]\s*\d+)*)\]")


def kept_strips(state: State, settings: Settings) -> list[Strip]:
    """Return the kept strips, internal before external (CRAG, Algorithm 1)."""
    internal = recompose(state.get("internal", []), settings)
    external = recompose(state.get("external", []), settings)
    return [*internal, *external]


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
        f"{as_data(entry['text'])}\n</passage>"
        for entry in numbered(strips)
    )


def paper_format(state: State, settings: Settings) -> str:
    """Join the strips as the paper's prompts carry them.

    ``; `` between strips; both kinds of knowledge as ``Knowledge1: … [sep] Knowledge2: …``, the
    form of the official knowledge files.
    """
    internal, external = (
        "; ".join(as_data(" ".join(strip["text"].split())) for strip in recompose(strips, settings))
        for strips in (state.get("internal", []), state.get("external", []))
    )
    if internal and external:
        return f"Knowledge1: {internal} [sep] Knowledge2: {external}"
    return internal or external


def as_data(text: str) -> str:
    """Neutralise what could act in a prompt: control characters, our fences, citation marks."""
    text = _FENCE.sub(lambda match: match[0].replace("<", "‹"), without_controls(text))
    return _BRACKETED_NUMBER.sub(r"(\1)", text)


def without_controls(text: str) -> str:
    """Replace control and direction characters, but not line breaks, which steer terminals too."""
    return _CONTROL.sub(" ", text)


def _attribute(text: str) -> str:
    return as_data(" ".join(text.split())).replace('"', "'").replace(">", "›").replace("<", "‹")
