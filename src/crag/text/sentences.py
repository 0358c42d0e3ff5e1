"""Where sentences end."""

import re

from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] - compiled

_FULL_WIDTH = "。！？"
_BEFORE_MORE = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:approx|appx|ca|cf|ch|dept|dr|ed|eds|eq|est|et al|etc|ex|fig|figs|gen|"
    r"incl|inc|max|min|misc|mr|mrs|ms|no|nos|op|p|para|pp|prof|ref|refs|rev|sec|sr|st|tab|v|ver|vol|"
    r"vs|\d{1,3}|[a-zA-Z])\.\s*\Z",
    re.IGNORECASE,
)
"""Ends of pieces that the next one goes on with: abbreviations, numbers of items, initials."""
_GOES_ON = re.compile(r"[a-z0-9(\[]")
_MARKER = re.compile(r"\s*(?:\d{1,3}|[a-zA-Z])[.)]\s*\Z")


def sentences_of(text: str) -> list[str]:
    """Cut `text` at sentence ends, blank pieces left out; white space is folded."""
    return [" ".join(piece.split()) for piece in split_sentences(text) if piece.strip()]


def split_sentences(text: str) -> list[str]:
    """Cut `text` at sentence ends; joined, the pieces are the text.

    A line end within a paragraph is white space like any other. Dots within names
    (`httpx.ProxyError`) and versions, and those of abbreviations, end no sentence.
    """
    pieces: list[str] = list(segment("en", text))
    # A segmenter that lost characters must not lose them for our users.
    if "".join(pieces) != text:
        return [text]
    joined: list[str] = []
    for piece in pieces:
        if joined and _belongs_together(joined[-1], piece):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def _belongs_together(before: str, after: str) -> bool:
    if "\n\n" in before[-3:] or not before.strip():
        return False
    if not before[-1].isspace() and before[-1] not in _FULL_WIDTH:
        return not after[:1].isspace()  # A name with dots.
    if _MARKER.match(before):
        return True
    return bool(_BEFORE_MORE.search(before[-12:]) and _GOES_ON.match(after))
