"""Objects that a notebook displays: a picture with its description, and a table."""

import io
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 176
"""Twice the screen resolution, for high-density screens."""
_SPECIAL = re.compile(r"([\\`*_|<>\[\]$])")


class Picture:
    """A figure and its description, which is shown where pictures are not supported."""

    def __init__(self, figure: "Figure", says: str) -> None:
        self.figure, self.says = figure, says

    def __repr__(self) -> str:
        return self.says

    def png(self) -> bytes:
        """Return the picture as PNG, without date or program metadata."""
        drawn = io.BytesIO()
        self.figure.savefig(drawn, format="png", dpi=_DPI, metadata={"Software": None})
        return drawn.getvalue()

    def save(self, path: Path) -> None:
        """Write the picture as a PNG file."""
        path.write_bytes(self.png())

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        width = round(self.figure.get_figwidth() * _DPI / 2)
        return self.png(), {"width": width, "alt": self.says}


class Table:
    """Rows of text under a heading; shown as Markdown, so the viewer's own colours apply.

    Cells are plain text; markup is escaped. `bold` lists the indices of emphasised rows, `numeric`
    the columns that are aligned on the right.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        bold: Collection[int] = (),
        numeric: Collection[str] = (),
    ) -> None:
        rules = ["---:" if name in numeric else "---" for name in columns]
        lines = [list(columns), rules]
        for place, row in enumerate(rows):
            cells = [plain(f"{one:+.2f}" if isinstance(one, float) else str(one)) for one in row]
            cells = ["" if one is None else cell for one, cell in zip(row, cells, strict=True)]
            lines.append([f"**{c}**" if c and place in bold else c for c in cells])
        self.markdown = "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def __repr__(self) -> str:
        return self.markdown

    def _repr_markdown_(self) -> str:
        return self.markdown


def plain(text: str) -> str:
    """Escape text so that Markdown shows it unchanged, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;")
