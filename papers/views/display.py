"""Objects that a notebook displays: a picture with its description, and a table."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 176
"""Twice the screen resolution, for high-density screens."""
_COLOURS = 128
"""Size of the palette, which reduces a picture to a third of its bytes and looks the same."""
_SPECIAL = re.compile(r"([\\`*_|<>\[\]$])")


class Picture:
    """A figure and its description, which is shown where pictures are not supported.

    The same figure gives the same bytes.
    """

    def __init__(self, figure: "Figure", says: str) -> None:
        self.figure = figure
        self.says = says

    def __repr__(self) -> str:
        return self.says

    def png(self) -> bytes:
        """Return the picture as PNG, without date or program metadata."""
        from PIL import Image

        drawn, small = io.BytesIO(), io.BytesIO()
        self.figure.savefig(drawn, format="png", dpi=_DPI, metadata={"Software": None})
        image = Image.open(drawn).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        image.save(small, format="PNG", optimize=True)
        return small.getvalue()

    def save(self, path: Path) -> None:
        """Write the picture as a PNG file."""
        path.write_bytes(self.png())

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        width = round(self.figure.get_figwidth() * _DPI / 2)
        return self.png(), {"width": width, "alt": self.says}


class Table:
    """Rows of text under a heading; shown as Markdown, so the viewer's own colours apply.

    Cells are plain text; markup is escaped. `bold` lists the indices of emphasised rows.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        bold: Sequence[int] = (),
        numeric: Sequence[str] = (),
    ) -> None:
        self.columns = list(columns)
        self.rows = [[_text(cell) for cell in row] for row in rows]
        self._bold = set(bold)
        self._numeric = set(numeric)

    def markdown(self) -> str:
        """Return the table as Markdown; numeric columns are right-aligned."""
        lines = [_line(self.columns), _line([self._rule(name) for name in self.columns])]
        lines += [_line(self._cells(place, row)) for place, row in enumerate(self.rows)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [self.columns, *self.rows]
        ]
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _rule(self, name: str) -> str:
        return "---:" if name in self._numeric else "---"

    def _cells(self, place: int, row: Sequence[str]) -> list[str]:
        cells = [plain(cell) for cell in row]
        return [f"**{cell}**" if cell else "" for cell in cells] if place in self._bold else cells


def plain(text: str) -> str:
    """Escape text so that Markdown shows it unchanged, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;")


def shortened(text: str, most: int) -> str:
    """Return the text on one line, truncated to `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:+.2f}" if isinstance(cell, float) else str(cell)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
