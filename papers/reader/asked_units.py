"""Sections of documentation, and the units in them that a question is asked of.

A unit is what a quotation would be: a sentence, an item of a list, a row of a table, or a block of
code with the sentence that leads it in. Sections without one are kept too: rivals are among them.
"""

import random
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from crag.errors import TrainingError
from crag.papers.loading.records import read_objects
from crag.papers.reader.documentation_rows import chunks_in
from crag.text.sentences import split_sentences
from crag.text.units import Part, leads_in, leans, parts_of

Range = tuple[int, int]
WIKIPEDIA = "Wikipedia"
"""The package of introductions."""
EACH = 14
"""Units of one package at most."""
_UNITS = 2
"""Units of one section at most."""
_WORDS = range(7, 71)
"""How many words a unit has."""
_LETTERS = 0.55
"""Share of a unit that letters make at least."""
_SECTION_WORDS = range(30, 401)
"""How many words a section has whose units are asked for."""
_ROWS = slice(2, 12)
"""Rows of a table that are taken: neither its head nor the line below."""
_ROW_WORDS = 6
_SENTENCE_WORDS = range(9, 61)
"""How many words a sentence of an introduction has."""
_INTRODUCTION = 2500
"""Characters of an introduction that count."""
_LEGAL = re.compile(r"copyright|licen[sc]e", re.IGNORECASE)
_LINE = re.compile(r"[^\n]+")


class Section(NamedTuple):
    """A section, as `crag index` splits it, and its units."""

    package: str
    source: str
    """The file within the package, or the title of the article."""
    title: str
    section: str
    """The headings above it."""
    text: str
    units: tuple[Range, ...] = ()
    """Ranges of `text` that a question is asked of."""

    @property
    def path(self) -> str:
        """Title and headings, each once."""
        return " > ".join(dict.fromkeys(filter(None, [self.title, *self.section.split(" > ")])))


def sections_of(folder: Path, most: int = EACH) -> list[Section]:
    """Return the sections of one package, each text once, with at most `most` units, or one more.

    They are drawn by the name of the package, so that other packages do not change them.
    """
    draw = random.Random(folder.name)  # noqa: S311 - data, no secret
    chunks = chunks_in(folder, draw)
    draw.shuffle(chunks)
    chunks = list({chunk.page_content: chunk for chunk in reversed(chunks)}.values())[::-1]
    sections: list[Section] = []
    taken = 0
    for chunk in chunks:
        text = chunk.page_content
        found = list(units_in(text)) if len(text.split()) in _SECTION_WORDS else []
        units = draw.sample(found, min(_UNITS, len(found))) if taken < most else []
        taken += len(units)
        place = Path(str(chunk.metadata["source"])).resolve()
        sections.append(
            Section(
                folder.name,
                place.relative_to(folder.resolve()).as_posix(),
                str(chunk.metadata.get("title") or ""),
                str(chunk.metadata.get("section") or ""),
                text,
                tuple(units),
            )
        )
    return sections


def introductions(corpus: Path, most: int, seed: int) -> list[Section]:
    """Return the introductions of a JSONL file of articles; at most `most` have a unit.

    Raises:
        DataError: it cannot be read.
        TrainingError: an article has no title or no text.
    """
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    try:
        articles = [(one["title"], one["text"][:_INTRODUCTION]) for one in read_objects(corpus)]
    except (KeyError, TypeError) as error:
        message = f"{corpus}: an article needs a title and a text ({error})"
        raise TrainingError(message) from error
    sections = [Section(WIKIPEDIA, title, title, "", text) for title, text in articles]
    taken = 0
    for index in draw.sample(range(len(sections)), len(sections)):
        text = sections[index].text
        sentences = [s for s in split_sentences(text) if len(s.split()) in _SENTENCE_WORDS]
        if taken == most:
            break
        if not sentences:
            continue
        sentence = draw.choice(sentences).strip()
        start = text.find(sentence)
        if start >= 0:
            sections[index] = sections[index]._replace(units=((start, start + len(sentence)),))
            taken += 1
    return sections


def units_in(text: str) -> Iterator[Range]:
    """Yield the ranges of a section that answer something by themselves.

    >>> text = "Shut the lid before you start the pump, or it will stop. It leaks."
    >>> [text[start:end] for start, end in units_in(text)]
    ['Shut the lid before you start the pump, or it will stop.']
    """
    before: Part | None = None
    for _, run in groupby(parts_of(text), key=lambda part: part.block):
        block = list(run)
        if block[0].kind in {"sentence", "item"}:
            for part in block:
                yield from _alone(text, part, before)
                before = part
        elif block[0].kind != "heading":
            yield from _led_in(text, block, before)
        before = block[-1]


def _alone(text: str, part: Part, before: Part | None) -> Iterator[Range]:
    """Yield an item or a sentence, with the one before it where it leans on that."""
    body, start = text[part.start : part.end], part.start
    if not is_usable(body) or (part.kind == "sentence" and leads_in(body)):
        return
    if part.kind == "sentence" and leans(body):
        start = before.start if before is not None and before.kind == "sentence" else part.end
    if is_usable(text[start : part.end]):
        yield start, part.end


def _led_in(text: str, block: Sequence[Part], before: Part | None) -> Iterator[Range]:
    """Yield a table or code with the sentence that leads it in, or rows of the table."""
    first, last = block[0], block[-1]
    leads = before is not None and leads_in(text[before.start : before.end])
    start = before.start if before is not None and leads else first.start
    if is_usable(text[start : last.end]):
        yield start, last.end
    elif first.kind == "row":
        yield from _rows_in(text, first.start, last.end)


def _rows_in(text: str, start: int, end: int) -> Iterator[Range]:
    for row in list(_LINE.finditer(text, start, end))[_ROWS]:
        if len(row[0].split()) >= _ROW_WORDS and is_usable(row[0]):
            yield row.span()


def is_usable(text: str) -> bool:
    """Return whether a text is of a length to ask for, mostly letters, and not about rights.

    >>> is_usable("The pump stops by itself after 20 minutes.")
    True
    >>> is_usable("Too short.")
    False
    """
    letters = sum(character.isalpha() for character in text)
    mostly_letters = letters > _LETTERS * len(text) and text.isascii()
    return len(text.split()) in _WORDS and mostly_letters and not _LEGAL.search(text)
