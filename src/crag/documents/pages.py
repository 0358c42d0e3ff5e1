"""Loaders of whole-page formats: text, code, Markdown, reStructuredText, HTML, PDF, notebooks."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crag.documents.markdown import read_markdown
from crag.documents.sources import SourceText, in_units, of_blocks, read_text
from crag.errors import SourceError
from crag.extras import how_to_install
from crag.text.blocks import Block, escaped
from crag.text.encodings import decoded
from crag.text.html import Shown, read_page
from crag.text.paragraphs import blocks_of_text
from crag.text.pdf import has_ocr, read_pdf

_logger = logging.getLogger(__name__)

_FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What parsers raise on texts that they are not made for, which are then read as plain."""
_HEADINGS = {
    **dict.fromkeys((".adoc", ".asciidoc", ".wiki", ".mediawiki"), r"(={1,6})\s+(\S.*)"),
    ".org": r"(\*+)\s+(\S.*)",
    ".tex": r"\\((?:sub)*)section\*?\{([^{}]+)\}.*",
}
"""By suffix, the lines that are headings, with marks that are the longer the deeper they stand."""
_SCANNED = f"no text in it: scanned? {how_to_install('ocr')}, or recognise its text first"


def load_text(path: Path) -> Iterator[SourceText]:
    """Load plain text, or one whose markup is read for its headings alone."""
    lines, blocks = read_text(path).split("\n"), list[Block]()
    mark = re.compile(_HEADINGS.get(path.suffix.lower(), "(?!)"))
    for at, found in enumerate(map(mark.fullmatch, lines)):
        if found:
            title = escaped(found[2].strip(" =\t"))
            blocks.append(Block("heading", at + 1, at + 1, title, len(found[1]) or 1))
            lines[at] = ""
    blocks += blocks_of_text("\n".join(lines))
    yield of_blocks(path, "", sorted(blocks, key=lambda block: block.first), "line")


def load_code(path: Path) -> Iterator[SourceText]:
    """Load the source of a program; its title is the file's name."""
    text = read_text(path).rstrip()
    first = 1 + len(text) - len(text.lstrip("\n"))
    code = Block("code", first, text.count("\n") + 1, text.lstrip("\n"), info=path.suffix[1:])
    yield of_blocks(path, path.name, [code] if text else [], "line")


def load_markdown(path: Path) -> Iterator[SourceText]:
    """Load Markdown; its title is that of the front matter, else the first ``# `` heading."""
    yield _marked_up(path, read_markdown)


def load_rst(path: Path) -> Iterator[SourceText]:
    """Load reStructuredText, with Sphinx's directives and roles; its title is the first heading."""
    from crag.documents.restructured import read_rst

    yield _marked_up(path, lambda text: Shown(read_rst(text)))


def _marked_up(path: Path, read: Callable[[str], Shown]) -> SourceText:
    """Read a text, as a plain one where its parser fails."""
    text = read_text(path)
    try:
        shown = read(text)
    except _FAULTS:
        _logger.warning("cannot read the markup of %s", path.name, exc_info=True)
        shown = Shown(blocks_of_text(text))
    return of_blocks(path, unit="line", **shown._asdict())


def load_html(path: Path) -> Iterator[SourceText]:
    """Load what a web page shows, the paragraphs counted."""
    shown = read_page(decoded(path.read_bytes(), "text/html"))
    parts = ([block] for block in shown.blocks)
    yield in_units(path, shown.title, parts, "paragraph", fields=shown.fields)


def load_pdf(path: Path) -> Iterator[SourceText]:
    """Load what is seen of a PDF, and the text of scanned pages where the extra `ocr` is there.

    Raises:
        SourceError: it has no text.
        ContentError: it is damaged or encrypted.
    """
    title, blocks = read_pdf(path.read_bytes())
    if not blocks:
        problem = "no text in it, nor any in its pictures" if has_ocr() else _SCANNED
        raise SourceError(str(path), problem)
    yield of_blocks(path, title, blocks, "page")


def load_notebook(path: Path) -> Iterator[SourceText]:
    """Load text and code of a Jupyter notebook of version 4, without what cells have put out."""
    notebook = json.loads(decoded(path.read_bytes(), "text/plain"))
    language = (notebook.get("metadata") or {}).get("kernelspec", {}).get("language", "python")
    yield in_units(path, "", (_cell(cell, language) for cell in notebook["cells"]), "cell")


def _cell(cell: Mapping[str, Any], language: str) -> Sequence[Block]:
    source = cell.get("source", "")
    text = (source if isinstance(source, str) else "".join(source)).strip("\n")
    if cell["cell_type"] != "code":
        return read_markdown(text).blocks
    return [Block("code", 1, 1, text, info=language)] if text.strip() else []
