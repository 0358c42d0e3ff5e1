"""Where in a quotation the answer itself stands: a whole date, amount or name, or nothing."""

import re

from crag.reading import Span
from crag.text.words import words

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_CURRENCY = r"(?:[€$£¥]|EUR|USD|GBP|CHF)"
_NUMBER = r"\d(?:[\d.,:/'-]*\d)?"
_UNIT = (
    rf"(?:%|°C?|per ?cent\b|{_CURRENCY}|k?[gm]\b|[cmn]m\b|m?l\b|[kMGT]i?B\b|[kM]?W\b|m?s\b"
    r"|(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|euros?|dollars?|pounds?)\b)"
)
_NAME = r"[^\W\d_a-z][\w'’.-]*(?: [^\W\d_a-z][\w'’-]*)+"
_CLAUSE = re.compile(r"[.;!?](?=\s)")
_ASKS = re.compile(r"[^.!:\n]*\?")
_WHOLE = re.compile(
    rf"(?i:{_DAY}\.? {_MONTH}(?:,? \d{{4}})?|{_MONTH} {_DAY}\b(?:,? \d{{4}})?)"
    rf"|(?:{_CURRENCY} ?)?{_NUMBER}(?:[ -]?{_UNIT})?"
    rf"|{_NAME}(?:, {_NAME})*(?:,? and {_NAME})?"
    r"|\w+(?:[-._/@:]\w+)*"
)
"""Dates, amounts, names of several words, and any other word, of which no part is set off."""


def set_off(question: str, text: str, span: Span, place: tuple[int, int]) -> tuple[int, int] | None:
    """Return the span to set off within a `place` of the text, if there is one.

    It must be likelier than that the passage holds no answer, lie in the place and in no question,
    and have a word that the question does not have. What it cuts in two is set off whole.
    """
    start, end = span["start"], span["end"]
    if clause := _CLAUSE.search(text, start, end):
        end = clause.start()
    is_within = place[0] <= start and end <= place[1]
    if span["score"] <= 0 or not is_within or _ASKS.match(text, start):
        return None
    for whole in _WHOLE.finditer(text, *place):
        if whole.start() < end and whole.end() > start:
            start, end = min(start, whole.start()), max(end, whole.end())
    return None if {*words(text[start:end])} <= {*words(question)} else (start, end)
