"""The words that a reader sees on a page of a PDF, and where they stand.

Text that no reader sees is often written to be found by programs alone: without ink, white on
white, tiny, outside the page, under a shape or a picture. Each kind of it has the same mark: the
page looks the same without it. So the page is drawn with its text and without, and words whose
place shows no difference are left out. But text over a scan, which is what the picture says, stays.
"""

import ctypes
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SCALE, _LONGEST_SIDE = 1.0, 2400
"""Pixels of a point, and of the longer side of a page at most."""
_CONTRAST = 16
"""Difference of a colour, of 255, from which on somebody may see it."""
_INK = 60
"""Difference within a word of a scan between its ink and its paper."""
_SMALLEST = 2.0
"""Points below which a font is not read by people."""
_SCAN = 0.6
"""Share of a page that is covered by pictures if it is a scan."""
_OVERLAP = 0.25
"""Share of the smaller of two texts from which on they are looked at one after the other."""
_MOST_DRAWN = 8
"""Times that the texts of a page are drawn; more texts at one place are looked at together."""
_FAR = 1.0
"""Distance of two words of one line, in font sizes, from which on they are two segments."""
_RULE = 0.6
"""Share of the width of lines that a rule between them has."""
_HYPHEN_OF_PDFIUM = "\x02"
"""Stands for a hyphen at the end of a line."""
_BULLET_OF_LATEX = "\x88"
"""What PDFium reads where a font of LaTeX does not tell that this is a bullet."""
_READ_AS = {_HYPHEN_OF_PDFIUM: "-", _BULLET_OF_LATEX: "•", "\xa0": " ", "\t": " "}


_Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""


class Segment(NamedTuple):
    """Words of one line that stand near each other.

    Coordinates are those of a page held upright: text runs from left to right, and `base` grows
    upwards.
    """

    text: str
    """Begins with a space if one stands before it."""
    left: float
    right: float
    base: float
    size: float


class SeenText(NamedTuple):
    """What is seen in one direction of writing, with the page without text below it."""

    segments: list[Segment]
    below: "NDArray[np.uint8]"
    """Rows, columns and colours."""
    left: float
    top: float
    scale: float

    def is_ruled(self, left: float, right: float, high: float, low: float) -> bool:
        """Return whether a line, or the edge of a coloured area, lies between two heights."""
        rows = slice(*(max(0, int((self.top - at) * self.scale)) for at in (high, low)))
        columns = slice(*(max(0, int((at - self.left) * self.scale)) for at in (left, right)))
        part = self.below[rows, columns]
        if part.shape[0] < 2 or not part.shape[1]:  # noqa: PLR2004 - an edge has two sides
            return False
        edges = np.abs(np.diff(part.astype(np.int16), axis=0)) > _CONTRAST
        return bool(edges.any(axis=2).mean(axis=1).max() > _RULE)


class _Word(NamedTuple):
    """Characters without a space between them, in one text object of the page."""

    text: str
    boxes: list[_Box]
    """Left, bottom, right and top of each, on the page as it is."""
    object: int
    direction: int
    """Quarters of a turn that it is written at."""
    base: float
    size: float
    is_spaced: bool
    """Whether a space stands before it."""


def seen_texts(page: Any) -> list[SeenText]:
    """Return what is seen on a page of PDFium, in the direction of most of its text first."""
    words = list(_words(page))
    if not words:
        return []
    canvas = _Canvas(page)
    is_seen = _changes(canvas, words) & (np.array([word.size for word in words]) >= _SMALLEST)
    if canvas.is_scan:
        inked = np.array([canvas.is_inked(word) for word in words])
        if (inked & ~is_seen).sum() > is_seen.sum():
            is_seen |= inked
    kept = [word for word, seen in zip(words, is_seen, strict=True) if seen]
    directions = sorted({word.direction for word in kept}, key=lambda way: -_letters(kept, way))
    return [
        canvas.in_direction(way, [word for word in kept if word.direction == way])
        for way in directions
    ]


def _letters(words: Sequence[_Word], direction: int) -> int:
    return sum(len(word.text) for word in words if word.direction == direction)


def _words(page: Any) -> Iterator[_Word]:
    """Yield the words of a page as PDFium orders its characters."""
    from pypdfium2 import raw

    text = page.get_textpage()
    numbers = [ctypes.c_double() for _ in range(4)]
    places = [ctypes.byref(number) for number in numbers]
    left, right, bottom, top = numbers
    matrix = raw.FS_MATRIX()
    word: _Word | None = None
    last, is_spaced = 0, True
    direction, base, size = 0, 0.0, 0.0
    for at in range(text.count_chars()):
        character = chr(raw.FPDFText_GetUnicode(text, at))
        character = _READ_AS.get(character, character)
        held = raw.FPDFText_GetTextObject(text, at)
        if not held or not character.isprintable() or character.isspace():
            is_spaced = True
            continue
        address = _address(held)
        if address != last:
            last = address
            raw.FPDFText_GetMatrix(text, at, matrix)
            raw.FPDFText_GetCharOrigin(text, at, *places[:2])
            direction = -round(raw.FPDFText_GetCharAngle(text, at) / (math.pi / 2)) % 4
            base = _upright((left.value, right.value) * 2, direction)[1]  # pyright: ignore[reportArgumentType]
            size = raw.FPDFText_GetFontSize(text, at) * math.hypot(matrix.c, matrix.d)
            if word is not None:
                yield word
                word = None
        raw.FPDFText_GetCharBox(text, at, *places)
        box = (left.value, bottom.value, right.value, top.value)
        if word is not None and not is_spaced:
            word = word._replace(text=word.text + character)
            word.boxes.append(box)
        else:
            if word is not None:
                yield word
            word = _Word(character, [box], address, direction, base, size, is_spaced)
        is_spaced = False
    if word is not None:
        yield word


def _segments(words: Sequence[_Word]) -> Iterator[Segment]:
    current: Segment | None = None
    for word in words:
        boxes = [_upright(box, word.direction) for box in word.boxes]
        left, right = min(box[0] for box in boxes), max(box[2] for box in boxes)
        text = " " * word.is_spaced + word.text
        if current is not None:
            size = min(word.size, current.size)
            is_level = abs(word.base - current.base) < size / 10
            is_same = is_level and abs(word.size - current.size) < size / 10
            if is_same and -size / 2 < left - current.right < _FAR * size:
                ends = min(current.left, left), max(current.right, right)
                current = Segment(current.text + text, *ends, current.base, current.size)
                continue
            yield current
        current = Segment(text, left, right, word.base, word.size)
    if current is not None:
        yield current


def _changes(canvas: "_Canvas", words: Sequence[_Word]) -> "NDArray[np.bool_]":
    """Return which words change the page: those of each text object by itself."""
    boxes = canvas.pixels_of([box for word in words for box in word.boxes])
    owners = np.repeat(np.arange(len(words)), [len(word.boxes) for word in words])
    inked = np.zeros(len(words))
    for group in _apart(words):
        counts = canvas.changed_by(group, boxes)
        is_theirs = np.array([word.object in group for word in words])
        inked += is_theirs * np.bincount(owners, counts > 0, len(words))
    return inked > np.bincount(owners) / 2


def _apart(words: Sequence[_Word]) -> list[set[int]]:
    """Part text objects so that none lies over another one of its group."""
    held: dict[int, list[_Box]] = {}
    for word in words:
        held.setdefault(word.object, []).extend(word.boxes)
    names = list(held)
    boxes = np.array([_around(held[name]) for name in names])
    areas = np.maximum((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]), 0.1)
    groups: list[list[int]] = [[]]
    for at, box in enumerate(boxes):
        for group in groups:
            others = boxes[group]
            width = np.minimum(others[:, 2], box[2]) - np.maximum(others[:, 0], box[0])
            height = np.minimum(others[:, 3], box[3]) - np.maximum(others[:, 1], box[1])
            common = np.maximum(width, 0) * np.maximum(height, 0)
            if not (common > _OVERLAP * np.minimum(areas[group], areas[at])).any():
                group.append(at)
                break
        else:
            if len(groups) < _MOST_DRAWN:
                groups.append([at])
            else:
                groups[-1].append(at)
    return [{names[at] for at in group} for group in groups]


class _Canvas:
    """A page as it is drawn, not turned, with its texts or without."""

    def __init__(self, page: Any) -> None:
        from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE, FPDF_PAGEOBJ_TEXT

        self._page, self._bounds = page, page.get_bbox()
        left, bottom, right, top = self._bounds
        self._scale = min(_SCALE, _LONGEST_SIDE / max(right - left, top - bottom, 1))
        found = list(page.get_objects(filter=(FPDF_PAGEOBJ_TEXT, FPDF_PAGEOBJ_IMAGE)))
        self._texts = {_address(one.raw): one.raw for one in found if one.type == FPDF_PAGEOBJ_TEXT}
        pictures = [one.get_bounds() for one in found if one.type == FPDF_PAGEOBJ_IMAGE]
        self.is_scan = sum(map(_area, pictures)) > _SCAN * _area(self._bounds)
        self._show(self._texts, shown=False)
        self._below = self._drawn()

    def changed_by(self, texts: Collection[int], boxes: "NDArray[np.intp]") -> "NDArray[np.intp]":
        """Count the pixels within each box that texts change."""
        self._show(texts, shown=True)
        drawn = self._drawn()
        self._show(texts, shown=False)
        differs = (drawn.view(np.uint32) != self._below.view(np.uint32))[..., 0]
        distance = np.abs(drawn[differs].astype(np.int16) - self._below[differs])
        sums = np.zeros([size + 1 for size in differs.shape], np.int32)
        sums[1:, 1:][differs] = (distance > _CONTRAST).any(axis=1)
        left, low, right, high = boxes.T
        sums = sums.cumsum(0, np.int32).cumsum(1, np.int32)
        counts: NDArray[np.intp] = (
            sums[low, right] - sums[high, right] - sums[low, left] + sums[high, left]
        )
        return counts

    def is_inked(self, word: _Word) -> bool:
        """Return whether a picture shows something where a word stands."""
        ((left, low, right, high),) = self.pixels_of([_around(word.boxes)])
        part = self._below[high:low, left:right]
        return bool(part.size and np.ptp(part, axis=(0, 1)).max() > _INK)

    def pixels_of(self, boxes: Sequence[_Box]) -> "NDArray[np.intp]":
        """Return the pixels of boxes, counted from the upper left; those outside are empty."""
        height, width = self._below.shape[:2]
        left, low, right, high = np.array(boxes).T
        x = np.array([left, right]) - self._bounds[0]
        y = self._bounds[3] - np.array([high, low])
        (left, right), (high, low) = (
            np.clip(np.array([np.floor(at[0]), np.ceil(at[1])]), 0, most).astype(np.intp)
            for at, most in ((x * self._scale, width), (y * self._scale, height))
        )
        return np.stack([left, low, right, high], axis=1)

    def in_direction(self, direction: int, words: Sequence[_Word]) -> SeenText:
        """Return words of one direction, and the page turned like them."""
        left, _, _, top = _upright(self._bounds, direction)
        below = np.rot90(self._below, -direction)
        return SeenText(list(_segments(words)), below, left, top, self._scale)

    def _show(self, texts: Iterable[int], *, shown: bool) -> None:
        from pypdfium2.raw import FPDFPageObj_SetIsActive

        for text in texts:
            if text in self._texts:
                FPDFPageObj_SetIsActive(self._texts[text], shown)

    def _drawn(self) -> "NDArray[np.uint8]":
        turned = (360 - self._page.get_rotation()) % 360
        picture = self._page.render(scale=self._scale, rotation=turned, prefer_bgrx=True)
        return picture.to_numpy().copy()  # type: ignore[no-any-return]


def _upright(box: _Box, direction: int) -> _Box:
    """Turn a box with its text, so that it runs from left to right."""
    left, bottom, right, top = box
    match direction:
        case 1:
            return bottom, -right, top, -left
        case 2:
            return -right, -top, -left, -bottom
        case 3:
            return -top, left, -bottom, right
        case _:
            return box


def _around(boxes: Iterable[_Box]) -> _Box:
    left, bottom, right, top = zip(*boxes, strict=True)
    return min(left), min(bottom), max(right), max(top)


def _area(box: _Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def _address(held: Any) -> int:
    return ctypes.addressof(held.contents)
