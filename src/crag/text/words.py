"""The words of a text: without markup, and as the index stores them (stems, names, their parts)."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, pairwise
from threading import Lock
from typing import Any

from crag.text.language import ENGLISH, language_of

VERSION = 3
"""Changes when the same text gets other words, so that stored ones are made again."""
_SHORTEST_PIECE = 3
_LONGEST = 100
"""Characters of a word; the rest of a longer one (a key, a blob) is cut off."""

# Python's \w leaves out the vowel signs of Hebrew, Arabic and the scripts of India.
_SIGNS = "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u0900-\u0963\u0970-\u0dff"
_LETTERS = rf"[\w{_SIGNS}]+"
_NAME = re.compile(rf"(?:--?|[.@$])?{_LETTERS}(?:[.:/@+\-]+{_LETTERS})*(?:\+\+|#)?")
_PART = re.compile(rf"(?:[^\W_]|[{_SIGNS}])+")
_BARE = re.compile(_LETTERS)
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)"
)
"""Scripts without spaces, and Korean, whose words carry their particles."""
_EXACT = re.compile(r"\d|_|\w[.:@+#]\w|^[-.@$]|[+#]$")
"""What a name has that has to be found as it is written; `on/off` and `long-life` are words."""
_NAMED = re.compile(r"(?<=\s)(?<![.?!:]\s)(?:[^\W\d_a-z][\w.+#-]*|\w*\d[\w.]*|\w+[A-Z_]\w*)")
"""A word with a capital letter, a digit or an underscore."""
HOLDS_NO_LONGER = (
    "superseded|obsolete|deprecated|withdrawn|expired|outdated|out of date|archived|old version"
    "|replaced by|no longer (?:valid|in force|applies|apply|maintained)"
)
"""How it is said of a text that it holds no longer."""
_FEWEST_OF_PLURAL = 3
GROUPS = re.compile(r"(?<=\d)[,'’](?=\d{3}(?!\d))")
"""What groups the digits of a large number; a point may be that of a decimal or of a version."""
_CONTRACTED = re.compile(r"(?<=\w)['’](?:s|t|re|ve|ll|d|m)\b")
_ACCENTS = re.compile(r"[\u0300-\u036f]")
_STOP_WORDS = """
a about all also am an and any are as at be been being but by can could did do does doing for from
get had has have having how i if in into is it its just may me might must my no not of off on or our
out over own shall she should so some such than that the their them then there these they this those
to too under until up us very was we were what when where which while who whom why will with would
you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_stemming = Lock()
"""A stemmer keeps the word it works on."""
_MARKUP = re.compile(r"^[ \t]*(?:(?:`{3,}|~{3,}).*$|\|[-| ]+$|#{1,6}[ \t]+)", re.MULTILINE)
"""A fence, the rule of a table, or the mark of a heading."""
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?![\w*])")
_CELLS = re.compile(r"(?:(?<![ \t])[ \t]+)?\|[ \t]*")


def words(text: str) -> Iterator[str]:
    """Return the words of a text, in order, in lower case and without accents.

    A name such as ``httpx.ProxyError``, ``--no-color`` or ``E_404`` is returned as it is and in
    parts. Parts are stemmed as English; in scripts without spaces, and in Korean, every two
    neighbouring characters are a word. Words hold letters, digits and ``-_.:/@+#$``: no quotes, no
    spaces. A number with commas, such as ``80,000``, is one word, ``80000``.
    """
    joint = GROUPS.sub("", _CONTRACTED.sub("", text))
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", joint))
    names = _NAME.findall(unicodedata.normalize("NFKC", plain))
    return chain.from_iterable(map(_words_of_name, names))


def bare(text: str) -> str:
    """Return the words of a text as they are written, a space around each: without its markup.

    >>> bare("Run `git bisect` now.")
    ' Run git bisect now '
    """
    return f" {' '.join(_BARE.findall(text))} "


@lru_cache(maxsize=100_000)
def _words_of_name(name: str) -> tuple[str, ...]:
    """Return the words of a name; a text says most of its names again and again."""
    parts = [part for whole in _PART.findall(name) for part in _pieces(whole)]
    found = [] if parts == [name] else [name.casefold()[:_LONGEST]]
    for piece in chain.from_iterable(_UNSPACED.split(part.casefold()) for part in parts):
        if _UNSPACED.match(piece):
            found += map("".join, pairwise(piece) if len(piece) > 1 else piece)
        elif piece:
            found.append(_stem(piece) if len(piece) <= _LONGEST else piece[:_LONGEST])
    return tuple(found)


def _pieces(part: str) -> list[str]:
    """Split ``TestClient`` into its words, but not PromQL or JITs."""
    pieces = _CAMEL.split(part)
    return pieces if min(map(len, pieces)) >= _SHORTEST_PIECE else [part]


def word_count(text: str) -> int:
    """Count words as spaces part them, or as pairs of characters in scripts without spaces."""
    return max(len(text.split()), sum(len(run) - 1 for run in _UNSPACED.findall(text)))


def question_words(question: str) -> list[str]:
    """Return the distinct words to search for: without stop words, unless there are no others."""
    found = list(dict.fromkeys(words(question)))
    return [word for word in found if word not in _stop_words()] or found


def exact_names(question: str) -> list[str]:
    """Return the names, codes and numbers of a question that are to be found as written.

    >>> exact_names("What does E_404 mean?")
    ['E_404']
    >>> exact_names("Is the light on/off?")
    []
    """
    return list(filter(_EXACT.search, (found[0] for found in _NAME.finditer(question))))


def names_in(question: str) -> list[str]:
    """Return the names, codes and numbers of an English question: what an answer must be about.

    >>> names_in("What does a ticket to Oakham cost on line 7?")
    ['Oakham', '7']

    The first word of a sentence is none, nor are those of a question in capital letters.
    """
    found = [
        name.removesuffix("s") if len(name) > _FEWEST_OF_PLURAL else name
        for match in _NAMED.finditer(GROUPS.sub("", question))
        if (name := match[0].rstrip(".-")) != "I"
    ]
    is_named = len(found) <= len(question.split()) / 2
    return found if found and is_named and language_of(question) in {ENGLISH, ""} else []


def names_lacking(question: str, text: str) -> list[str]:
    """Return the names of a question that a text does not have, in any case of letters."""
    said = GROUPS.sub("", text.casefold())
    return [name for name in names_in(question) if name.casefold() not in said]


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(words(_STOP_WORDS))


def _stem(word: str) -> str:
    if not word.isalpha():
        return word
    with _stemming:
        return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    from Stemmer import Stemmer

    return Stemmer("english")


def without_markup(text: str) -> str:
    """Return the words of canonical Markdown, white space folded.

    Fences, rules, the marks of headings, and emphasis go; names, flags and code stay as they are.
    """
    text = _EMPHASIS.sub(r"\2", _MARKUP.sub("", text))
    return " ".join(_CELLS.sub(" | ", text).replace("`", "").split())
