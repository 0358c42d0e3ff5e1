"""The words that a reader sees on a page of a PDF, and where they stand.

Text that no reader sees is often written to be found by programs alone: without ink, white on
white, tiny, outside the page, under a shape or a picture. Each kind of it has the same mark: the
page looks the same without it. So the page is drawn with its text and without, and words whose
place shows no difference are left out. But text over a scan, which is what the picture says, stays.
"""

import ctypes
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONGEST_SIDE = 2400
"""Pixels of the longer side of a page at most; else a point is a pixel."""
_CONTRAST = 16
"""Difference of a colour, of 255, from which on somebody may see it."""
_INK = 60
"""Difference within a word of a scan between its ink and its paper."""
_SMALLEST = 2.0
"""Points below which a font is not read by people."""
_SCAN = 0.6
"""Share of a page that is covered by pictures if it is a scan."""
_MOST_DRAWN = 8
"""Times that the texts of a page are drawn; more texts at one place are looked at together."""
_FAR = 0.9
"""Distance of two words of one line, in font sizes, from which on they are two segments."""
_RULE = 0.6
"""Share of the width of lines that a rule between them has."""
_LONGEST_NAME = 128
_BOLD = re.compile(rb"bold|black|heavy|demi|cmb", re.IGNORECASE)
"""In the name of a font."""
_HYPHEN = "\x02"
"""What PDFium reads for one at the end of a line."""

_Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""


class Segment(NamedTuple):
    """Words of one line that stand near each other.

    Coordinates are those of a page held upright: text runs from left to right, and `base` grows
    upwards.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    is_spaced: bool = True
    """Whether a space is written before it."""
    is_bold: bool = False

    @property
    def middle(self) -> float:
        """Return the height of the middle of small letters."""
        return self.base + 0.3 * self.size


Line = Sequence[Segment]
"""What stands at one height, from left to right."""


class SeenText(NamedTuple):
    """What is seen on a page, with the page without text below it."""

    lines: Sequence[Line]
    """From top to bottom, those of neighbouring columns joined."""
    below: "NDArray[np.uint8]"
    """Rows, columns and colours."""
    left: float
    top: float
    scale: float

    def rules(self, lines: Sequence[Line]) -> list[bool]:
        """Say of each line but the first whether a rule, or the edge of a colour, is above it."""
        ends = [end for line in lines for one in line for end in (one.left, one.right)]
        columns = self._pixels(min(ends) - self.left, max(ends) - self.left)
        found = []
        for above, line in pairwise(lines):
            rows = self._pixels(self.top - above[0].middle, self.top - line[0].middle)
            edges = np.abs(np.diff(self.below[rows, columns].astype(np.int16), axis=0)) > _CONTRAST
            shares = edges.any(axis=2).mean(axis=1) if edges.size else np.zeros(1)
            found.append(bool(shares.max() > _RULE))
        return found

    def _pixels(self, start: float, end: float) -> slice:
        return slice(max(0, int(start * self.scale)), max(0, int(end * self.scale)))


class _Word(NamedTuple):
    """Letters without a space between them, in one text object of the page."""

    object: int
    direction: int
    """Quarters of a turn that it is written at."""
    boxes: list[_Box]
    """Of each letter, on the page as it is."""
    upright: Segment


def seen_text(page: Any) -> SeenText | None:
    """Return what is seen on a page of PDFium, in the direction of most of its text."""
    words = list(_words(page))  # Before the canvas hides them.
    canvas = _Canvas(page)
    seen = canvas.seen(words)
    letters = Counter(word.direction for word in seen for _ in word.boxes)
    if not letters:
        return None
    way = max(letters, key=lambda direction: letters[direction])
    left, _, _, top = _upright(canvas.bounds, way)
    upright = (word.upright for word in seen if word.direction == way)
    lines = [list(_segments(line)) for line in lines_of(upright)]
    return SeenText(lines, np.rot90(canvas.below, -way), left, top, canvas.scale)


def lines_of(segments: Iterable[Segment]) -> list[Line]:
    """Return the lines of segments from top to bottom."""
    lines: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda one: -one.middle):
        near = lines[-1] if lines else []
        widest = max(near, key=lambda one: one.right - one.left, default=segment)
        if near and abs(segment.middle - widest.middle) < 0.4 * max(segment.size, widest.size):
            near.append(segment)
        else:
            lines.append([segment])
    return [sorted(line, key=lambda one: one.left) for line in lines]


def joined(line: Line) -> Segment:
    """Return a line as one segment."""
    letters = "".join(one.text for one in line)
    leftwards = sum(unicodedata.bidirectional(one) in {"R", "AL"} for one in letters)
    ordered = reversed(line) if 2 * leftwards > len(letters) else line
    text = "".join(" " * one.is_spaced + one.text for one in ordered)
    longest = max(line, key=lambda one: len(one.text))
    left, right = min(one.left for one in line), max(one.right for one in line)
    is_bold = all(one.is_bold for one in line)
    return Segment(text.strip(), left, right, longest.base, longest.size, is_bold=is_bold)


def _segments(words: Line) -> Iterator[Segment]:
    """Join the words of a line that stand near each other."""
    near = [words[0]]
    for word in words[1:]:
        if word.left - max(one.right for one in near) > _FAR * min(word.size, near[-1].size):
            yield joined(near)
            near = []
        near.append(word)
    yield joined(near)


def _words(page: Any) -> Iterator[_Word]:
    """Yield the words of a page as PDFium orders its characters."""
    from pypdfium2 import raw

    text, matrix = page.get_textpage(), raw.FS_MATRIX()
    x, y, font = ctypes.c_double(), ctypes.c_double(), ctypes.create_string_buffer(_LONGEST_NAME)
    letters, spaces = list[tuple[int, int, int, str]](), 1
    for at in range(text.count_chars()):
        character = chr(raw.FPDFText_GetUnicode(text, at)).replace(_HYPHEN, "-")
        held = raw.FPDFText_GetTextObject(text, at)
        if held and character.isprintable() and not character.isspace():
            letters.append((spaces, _address(held), at, character))
        else:
            spaces += 1
    before = 0
    for (spaces, held), word in groupby(letters, key=itemgetter(0, 1)):
        _, _, (at, *others), characters = zip(*word, strict=True)
        raw.FPDFText_GetMatrix(text, at, matrix)
        raw.FPDFText_GetCharOrigin(text, at, x, y)
        raw.FPDFText_GetFontInfo(text, at, font, _LONGEST_NAME, None)
        direction = -round(raw.FPDFText_GetCharAngle(text, at) / (math.pi / 2)) % 4
        base = _upright((x.value, y.value) * 2, direction)[1]  # pyright: ignore[reportArgumentType]
        size = raw.FPDFText_GetFontSize(text, at) * math.hypot(matrix.c, matrix.d)
        is_bold = _BOLD.search(font.value) is not None
        boxes = [text.get_charbox(one) for one in (at, *others)]
        lefts, _, rights, _ = zip(*(_upright(box, direction) for box in boxes), strict=True)
        said, ends = "".join(characters), (min(lefts), max(rights))
        upright = Segment(said, *ends, base, size, spaces > before, is_bold)
        yield _Word(held, direction, boxes, upright)
        before = spaces


class _Canvas:
    """A page as it is drawn, not turned, with its texts or without."""

    def __init__(self, page: Any) -> None:
        from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE, FPDF_PAGEOBJ_TEXT

        self._page, self.bounds = page, page.get_bbox()
        left, bottom, right, top = self.bounds
        self.scale = min(1.0, _LONGEST_SIDE / max(right - left, top - bottom, 1))
        found = list(page.get_objects(filter=(FPDF_PAGEOBJ_TEXT, FPDF_PAGEOBJ_IMAGE)))
        self._texts = {_address(one.raw): one.raw for one in found if one.type == FPDF_PAGEOBJ_TEXT}
        pictures = [one.get_bounds() for one in found if one.type == FPDF_PAGEOBJ_IMAGE]
        self._is_scan = sum(map(_area, pictures)) > _SCAN * _area(self.bounds)
        self._show(self._texts, shown=False)
        self.below = self._drawn()

    def seen(self, words: Sequence[_Word]) -> list[_Word]:
        """Return the words that change the page, or that a scan says."""
        seen = set[int]()
        for texts in self._apart(words):
            self._show(texts, shown=True)
            changes = np.abs(self._drawn().astype(np.int16) - self.below).max(axis=2) > _CONTRAST
            self._show(texts, shown=False)
            for at, word in enumerate(words):
                if word.object in texts and word.upright.size >= _SMALLEST:
                    inked = sum(bool(changes[self._place(box)].any()) for box in word.boxes)
                    seen |= {at} if 2 * inked > len(word.boxes) else set()
        if self._is_scan:
            scanned = {at for at, word in enumerate(words) if self._is_inked(word)}
            seen |= scanned if len(scanned - seen) > len(seen) else set()
        return [words[at] for at in sorted(seen)]

    def _apart(self, words: Sequence[_Word]) -> list[set[int]]:
        """Part text objects so that none lies over another one of its group."""
        held: dict[int, list[_Box]] = {}
        for word in words:
            held.setdefault(word.object, []).extend(word.boxes)
        groups = [set[int]() for _ in range(_MOST_DRAWN)]
        taken = np.zeros((_MOST_DRAWN, *self.below.shape[:2]), bool)
        for text, boxes in held.items():
            places = [self._place(box, 1) for box in boxes]
            taken_there = np.any([taken[:, *place].any(axis=(1, 2)) for place in places], axis=0)
            free = int(np.append(taken_there[:-1], False).argmin())
            groups[free].add(text)
            for place in places:
                taken[free, *place] = True
        return list(filter(None, groups))

    def _is_inked(self, word: _Word) -> bool:
        """Return whether a picture shows something where a word stands."""
        lefts, lows, rights, highs = zip(*word.boxes, strict=True)
        part = self.below[self._place((min(lefts), min(lows), max(rights), max(highs)))]
        return bool(part.size and np.ptp(part, axis=(0, 1)).max() > _INK)

    def _place(self, box: _Box, margin: float = 0) -> tuple[slice, slice]:
        """Return the pixels of a box but for a margin, none for one that is not on the page."""
        left, low, right, high = box
        x, y = self.bounds[0], self.bounds[3]
        across = [(left - x) * self.scale + margin, (right - x) * self.scale - margin]
        down = [(y - high) * self.scale + margin, (y - low) * self.scale - margin]
        (top, bottom), (start, end) = (
            (max(0, math.floor(first)), max(0, math.ceil(last))) for first, last in (down, across)
        )
        return slice(top, bottom), slice(start, end)

    def _show(self, texts: Iterable[int], *, shown: bool) -> None:
        from pypdfium2.raw import FPDFPageObj_SetIsActive

        for text in texts:
            if text in self._texts:
                FPDFPageObj_SetIsActive(self._texts[text], shown)

    def _drawn(self) -> "NDArray[np.uint8]":
        turned = (360 - self._page.get_rotation()) % 360
        return self._page.render(scale=self.scale, rotation=turned).to_numpy().copy()  # type: ignore[no-any-return]


def _upright(box: _Box, quarters: int) -> _Box:
    """Turn a box with its text, so that it runs from left to right."""
    for _ in range(quarters):
        left, bottom, right, top = box
        box = bottom, -right, top, -left
    return box


def _area(box: _Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def _address(held: Any) -> int:
    return ctypes.addressof(held.contents)
