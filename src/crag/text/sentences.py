"""Where sentences end."""

import re

from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] - compiled

from crag.text.language import ENGLISH, language_of

_WORDS = re.compile(r"\w")
_FULL_WIDTH = "。！？"
_ENGLISH_SHORT = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:approx|appx|ca|cf|ch|dept|dr|ed|eds|eq|est|et al|etc|ex|fig|figs|gen|"
    r"incl|inc|max|min|misc|mr|mrs|ms|no|nos|op|p|para|pp|prof|ref|refs|rev|sec|sr|st|tab|v|ver|vol|"
    r"vs|\d{1,3}|[a-zA-Z])\.\s*\Z",
    re.IGNORECASE,
)
"""Abbreviations and numbers of English, which end no sentence before what goes on: fig. 3."""
_GOES_ON = re.compile(r"[a-z0-9(\[]")
_OPENING = r"(?:^|[\s.(\[\"'„“«‘])"
_LETTER = r"[A-Za-z\u00c0-\u058f]"
"""Of the scripts with small and capital letters."""
_INITIAL = re.compile(_OPENING + rf"(?P<letter>{_LETTER})\.\s*\Z")
_SHORT = re.compile(_OPENING + rf"(?:{_LETTER}{{1,4}}|\d{{1,4}})\.\s*\Z")
"""An abbreviation or an ordinal, before a small letter or a digit: Abb. 3, d.w.z., 9. května."""
_GERMAN_ORDINAL = re.compile(
    r"\b(?:am|im|vom|zum|zur|beim|ab|bis|seit|de[mnrs]|die|das|(?:ein|jed|dies)e?[mnrs]?|und)"
    r"\s+\d{1,2}\.\s*\Z",
    re.IGNORECASE,
)
"""A number after an article or preposition; any noun that follows has a capital letter."""
_LONGEST_END = 24
"""Characters before a full stop in which an abbreviation is looked for."""
_LONGEST = 20_000
"""Characters that are cut at once: sentencex looks each end up from the beginning."""
_SOME = rf"(?s:.{{1,{_LONGEST}}})"
_PIECES = re.compile(rf"{_SOME}(?:(?<=\n)|\Z)|{_SOME}(?!\S)|{_SOME}")
"""Pieces of a longer text, cut between lines or words if possible."""
_MARKER = re.compile(r"\s*(?:\d{1,3}|[a-zA-Z])[.)]\s*\Z")


def sentences_of(text: str) -> list[str]:
    """Cut `text` at sentence ends, blank pieces left out; white space is folded."""
    return [" ".join(piece.split()) for piece in split_sentences(text) if piece.strip()]


def split_sentences(text: str, language: str = "") -> list[str]:
    """Cut `text` at sentence ends; joined, the pieces are the text.

    A line end within a paragraph is white space like any other. Dots within names
    (`httpx.ProxyError`) and versions, and those of abbreviations, end no sentence. `language` is an
    ISO 639-1 code; without it, the language is taken from the text, and is English if unclear.
    """
    language = language or language_of(text) or ENGLISH
    pieces = [piece for part in _PIECES.findall(text) for piece in segment(language, part)]
    # A segmenter that lost characters must not lose them for our users.
    if "".join(pieces) != text:
        return [text]
    joined: list[str] = []
    for piece in pieces:
        if joined and _belongs_together(joined[-1], piece, language):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def _belongs_together(before: str, after: str, language: str) -> bool:
    if "\n\n" in before[-3:]:
        return False  # It ends a paragraph.
    # The bar that ends a table's row, or a closing bracket, says nothing alone.
    if not _WORDS.search(after) or _MARKER.match(before):
        return True
    if not before[-1].isspace() and before[-1] not in _FULL_WIDTH:
        return not after[:1].isspace()  # A name with dots.
    end = before[-_LONGEST_END:]
    if language == ENGLISH:  # Whose sentences often begin with the name of a command.
        return bool(_ENGLISH_SHORT.search(end) and _GOES_ON.match(after))
    if after[:1].islower() or after[:1].isdigit():
        return _SHORT.search(end) is not None
    initial = _INITIAL.search(end)
    is_name = initial is not None and initial["letter"].isupper()
    return is_name or (language == "de" and _GERMAN_ORDINAL.search(end) is not None)
