"""Decompose, filter, recompose: the pure part of knowledge refinement (CRAG, Sec. 4.4)."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from crag.settings import Decomposition, Settings
from crag.state import Strip
from crag.text.untrusted import neutral
from crag.text.wholes import DOCTEST, GRID_RULE, Range, TextPiece, pieces_of

SENTENCES_PER_STRIP = 3
"""The paper says a few sentences; the official excerption joins three."""
LONGEST_SENTENCE = 120
"""Words; a longer run without a sentence end (a table, code) is cut, between lines where they are
shorter, so that each strip fits an evaluator's input."""
LONGEST_INTRODUCED, LONGEST_LEANING = 180, 60
"""Words of a unit up to which a block stays with the sentence that leads it in, and a sentence with
the one that it refers to."""
FIXED_WORDS, SHORTEST_REMAINDER = 50, 10
EXCERPT_MINIMUM_WORDS = 5
_BREAKS = re.compile(r"[\n\t]")
_EMPTY_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_ROWS_OF_GRID = re.compile(r"(?<=\+)[ \t]*\n(?=[ \t]*\|)")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"”*_]*\s+(?![a-z\s])")
_LINE, _WORD = re.compile(r".*\n|.+"), re.compile(r"\S+")
_SIZES = {"heading": 0, "term": 0, "sentence": 1, "block": SENTENCES_PER_STRIP}
"""How many sentences each kind of piece counts as."""
STRIPS_KEPT = 5
"""The paper's top-k of strips that are scored alone (CRAG, App. B.2; official code)."""
FEWEST_WORDS = 4
"""Strips with fewer words score -1.0 without the evaluator (official code)."""


def decompose(text: str, mode: Decomposition = "sentences") -> list[str]:
    """Cut `text` into strips, in order; white space gives none.

    `sentences` and windows of words lose no text: the joined strips equal `text` up to white space.
    """
    if not text.strip():
        return []
    match mode:
        case "sentences":
            return [text[start:end] for start, end in units_of(text, list(pieces_of(text)))]
        case "selection":
            return [_BREAKS.sub(" ", text).strip()]
        case "excerption":
            return _excerption(text)
        case "fixed_num":
            return _fixed_windows(_BREAKS.sub(" ", text).strip())
        case "fixed_num_spaced":
            return _fixed_windows(_BREAKS.sub(" ", text))


def located(text: str, strips: Sequence[str]) -> list[Range]:
    """Return where each strip starts and ends in the text it was cut from, with its indentation.

    The strips must hold all of the text except white space, in order: see `decompose`.
    """
    solid = [place for place, character in enumerate(text) if not character.isspace()]
    places: list[Range] = []
    used = 0
    for strip in strips:
        size = sum(not character.isspace() for character in strip)
        start = solid[used]
        indented = max(0, start - len(strip) + len(strip.lstrip()))
        begin = indented if text.startswith(strip, indented) else start
        places.append((begin, solid[used + size - 1] + 1))
        used += size
    return places


def choose(
    scores: Sequence[float], count: int, threshold: float | None = None
) -> list[tuple[bool, str]]:
    """Decide for each score whether its strip is kept, with the reason.

    Of the strips at or above the threshold the best `count` are kept. If none reaches it, the
    single best one is kept, so knowledge is never empty. Ties go to the earlier strip.
    """
    ranking = sorted(range(len(scores)), key=lambda index: -scores[index])
    passing = [i for i in ranking if threshold is None or scores[i] >= threshold]
    kept = set(passing[:count] or ranking[:1])
    return [
        (index in kept, _reason(index in kept, score, threshold, count))
        for index, score in enumerate(scores)
    ]


def score_of(strip: Strip) -> float:
    """Return the score of a strip; one that was not scored ranks below all others."""
    return -math.inf if strip["score"] is None else strip["score"]


def recompose(strips: Sequence[Strip], settings: Settings) -> list[Strip]:
    """Return the kept strips in the order that `settings.strip_order` names."""
    kept = [strip for strip in strips if strip["kept"]]
    if settings.strip_order == "score":
        kept.sort(key=score_of, reverse=True)
    return kept


SEPARATOR = " [sep] "
"""Between the knowledge from documents and from the web (official code)."""
_FIRST, _SECOND = "Knowledge1: ", "Knowledge2: "


def joint_text(internal: str, external: str) -> str:
    """Write both kinds of knowledge as one text, as the official program that joins them does.

    One kind alone is written without names; the official program leaves the other one empty.
    """
    if internal and external:
        return f"{_FIRST}{internal}{SEPARATOR}{_SECOND}{external}"
    return internal or external


_JOINT = re.compile(r"(knowledge1: .*?)( \[sep\] knowledge2:)", re.IGNORECASE | re.DOTALL)


def neutral_knowledge(text: str) -> str:
    """Disarm a text as `neutral` does, except for the separator of joint knowledge.

    Published knowledge files have it too, for biographies with small letters. Only the first one
    counts, and only in a text that begins as joint knowledge does, so that a page cannot set one
    within its own text.
    """
    joint = _JOINT.match(text)
    if joint:
        return neutral(joint[1]) + joint[2] + neutral(text[joint.end() :])
    return neutral(text)


def units_of(text: str, pieces: Iterable[TextPiece]) -> list[Range]:
    """Join up to three sentences, with their line breaks; a heading or a term starts a new unit.

    A list, a table, a block of code or an admonition is never cut, and stays with the sentence that
    leads it in; a sentence that refers to the one before it stays with that, if both are short.
    Returned is where each unit starts and ends in the text, from which the pieces were cut.
    """
    units: list[Range] = []
    unit: list[TextPiece] = []
    for piece in [part for whole in pieces for part in _cut_long(text, whole)]:
        if unit and _starts_unit(text, unit, piece):
            last = len(unit) - _leads_in_alone(unit, piece)
            units.append((unit[0].start, unit[last - 1].end))
            unit = unit[last:]
        unit.append(piece)
    if unit:
        units.append((unit[0].start, unit[-1].end))
    return units


def _leads_in_alone(unit: Sequence[TextPiece], piece: TextPiece) -> bool:
    """Return whether the last sentence of several stays with a block that has no room for all."""
    earlier = unit[-2:-1]
    is_after_text = any(one.kind in {"sentence", "block"} for one in earlier)
    return is_after_text and unit[-1].leads_in and piece.kind == "block"


def _starts_unit(text: str, unit: Sequence[TextPiece], piece: TextPiece) -> bool:
    """Return whether a piece begins the next unit, rather than going on with this one."""
    if unit[-1].kind == "heading" or (unit[-1].kind == "term" and piece.kind != "heading"):
        return False
    if piece.kind == "heading" or (piece.kind == "term" and not unit[-1].leads_in):
        return True
    size = sum(_SIZES[earlier.kind] for earlier in unit)
    words = len(text[unit[0].start : piece.end].split())
    if unit[-1].leads_in:
        return words > LONGEST_INTRODUCED
    if piece.leans and words <= LONGEST_LEANING:
        return False
    return size >= SENTENCES_PER_STRIP or words > LONGEST_SENTENCE


def _cut_long(text: str, piece: TextPiece) -> Iterator[TextPiece]:
    """Cut a very long piece between items or lines, and a very long line between words."""
    start, count = piece.start, 0
    starts = {begin for begin, _ in piece.items}
    items = {
        begin: size
        for begin, end in piece.items
        if (size := len(text[begin:end].split())) <= LONGEST_SENTENCE
    }
    for line in _LINE.finditer(text, piece.start, piece.end):
        size = items.get(line.start(), len(line[0].split()))
        if count and count + size > LONGEST_SENTENCE:
            most_after = min(count // 2, LONGEST_SENTENCE - size)
            if piece.kind == "block" and not piece.items:
                cut = _cut_before(text, start, line, most_after)
            elif line.start() in starts:
                cut = line.start()
            else:
                cut = _sentence_before(text, start, line.start(), most_after)
            yield piece._replace(start=start, end=_last(text, cut))
            start, count = cut, len(text[cut : line.start()].split())
        for word in _WORD.finditer(text, *line.span()):
            if count == LONGEST_SENTENCE:
                yield piece._replace(start=start, end=_last(text, word.start()))
                start, count = word.start(), 0
            count += 1
    yield piece._replace(start=start)


def _cut_before(text: str, start: int, line: re.Match[str], most: int) -> int:
    """Return where to cut a block that has no room for a line: where a part of it begins.

    A part of code begins after an empty line, or else at the margin, and a row of a grid after a
    rule. Between the cut and the line are at most `most` words; without such a place the cut is
    before the line.
    """
    rows = [row for row in text[start : line.end()].split("\n")[1:] if row.strip()]
    margin = min(len(row) - len(row.lstrip()) for row in rows)
    first = ">>>" if any(map(DOCTEST.match, rows)) else r"[^\s)\]}]"
    at_margin = re.compile(rf"\n(?=[ \t]{{{margin}}}{first})")
    is_grid = any(map(GRID_RULE.match, rows))
    for begins in (_ROWS_OF_GRID,) if is_grid else (_EMPTY_LINES, at_margin):
        for part in reversed(list(begins.finditer(text, start, line.end()))):
            if part.end() <= line.start() and len(text[part.end() : line.start()].split()) <= most:
                return part.end()
    return line.start()


def _sentence_before(text: str, start: int, end: int, most: int) -> int:
    """Return where the sentence begins that a place is in, if it has at most so many words."""
    ended = [match.end() for match in _SENTENCE_END.finditer(text, start, end + 1)]
    is_near = bool(ended) and len(text[ended[-1] : end].split()) <= most
    return ended[-1] if is_near else end


def _last(text: str, end: int) -> int:
    """Return the end of the last word before a place."""
    while text[end - 1].isspace():
        end -= 1
    return end


def _groups(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _excerption(text: str) -> list[str]:
    """Cut as the official `excerption` does, which drops delimiters.

    A piece that equals an entry, short ones glued to it included, is skipped; the first piece is an
    entry even if it is empty. Line breaks and tabs are spaces, as the official reader leaves them.
    """
    entries: list[str] = []
    known = Counter[str]()
    pieces = [piece for part in _BREAKS.sub(" ", text).split("?") for piece in part.split(". ")]
    for piece in pieces:
        if known[piece]:
            continue
        if not entries or len(piece.split()) > EXCERPT_MINIMUM_WORDS:
            entries.append(piece)
        else:
            known[entries[-1]] -= 1
            entries[-1] += piece
        known[entries[-1]] += 1
    strips = (" ".join(group) for group in _groups(entries, SENTENCES_PER_STRIP))
    return [strip for strip in strips if strip.strip()]


def as_split(text: str, index: int, count: int) -> str:
    """Return a passage with the spaces that the official reader leaves around it.

    It splits passages at ``[sep]`` without stripping them, so that all but the first one begin with
    a space, and all but the last one end with one.
    """
    return f"{' ' if index else ''}{text}{' ' if index < count - 1 else ''}"


def _fixed_windows(text: str) -> list[str]:
    """Cut into windows of 50 words; fewer than 10 remaining words join the last window.

    As in the official code a word is what stands between two spaces, if it is nothing too.
    """
    windows = list(_groups(text.split(" "), FIXED_WORDS))
    if len(windows) > 1 and len(windows[-1]) < SHORTEST_REMAINDER:
        remainder = windows.pop()
        windows[-1] = [*windows[-1], *remainder]
    return [strip for window in windows if (strip := " ".join(window)).strip()]


def _reason(kept: bool, score: float, threshold: float | None, limit: int) -> str:
    passes = threshold is None or score >= threshold
    if kept:
        return "among the best" if passes else "best of those below the strip threshold"
    return f"not among the best {limit}" if passes else f"below the strip threshold {threshold:g}"
