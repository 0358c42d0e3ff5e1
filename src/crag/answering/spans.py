"""Where in a quotation the answer itself stands: a whole date, amount or name, or nothing."""

import re

from crag.reading import Span
from crag.text.words import question_words, words

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
_FIELD = re.compile(r"^([^:\n]{1,40}): .*", re.MULTILINE)
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
    and have a word that the question does not have. The value of a field is not set off where
    the label of another one has more words of the question. What it cuts in two is set off whole.
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
    says_nothing = {*words(text[start:end])} <= {*words(question)}
    is_wrong = says_nothing or _is_of_another_field(question, text[slice(*place)], start - place[0])
    return None if is_wrong else (start, end)


def _is_of_another_field(question: str, text: str, at: int) -> bool:
    """Return whether a place is in a field, and the label of another has more words asked for."""
    asked, own, others = {*question_words(question)}, 0, 0
    for field in _FIELD.finditer(text):
        held = len(asked & {*words(field[1])})
        if field.start() <= at < field.end():
            own = held
        else:
            others = max(others, held)
    return others > own
