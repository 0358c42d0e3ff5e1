"""Loaders of office formats: DOCX, PPTX, XLSX and other workbooks."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.documents.sources import HARD_BREAK, SourceText, joined, of_file
from crag.documents.texts import check_archive, reading
from crag.documents.word_numbers import FALLBACK, Item, items_of, tag
from crag.errors import SourceError
from crag.extras import require
from crag.text.html import table_rows

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.run import Run
    from lxml.etree import _Element
    from python_calamine import CalamineSheet

MOST_CELLS = 50_000_000
"""Of one sheet, from its first cell to its last: each takes 32 bytes, empty or not."""
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_DIMENSION = re.compile(rb'dimension ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_HEAD = 4096
"""Bytes of a sheet within which its dimension stands."""
_MARK = re.compile(r"\d{1,9}[.)]")
"""A number that begins an item of a list in Markdown."""
_NOTE_ID = tag("id")


def load_docx(path: Path) -> Iterator[SourceText]:
    """Load a Word document with its headings, lists, tables and notes; hidden text is left out.

    Raises:
        SourceError: it is damaged or encrypted.
    """
    from docx import Document
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    with _office_errors(path, "DOCX", OpcError, LxmlError):
        check_archive(path)
        with path.open("rb") as file:
            document = Document(file)
        title = document.core_properties.title.strip()
        text = "\n\n".join(_docx_blocks(document))
    yield of_file(path, title, text, "paragraph", markup="markdown")


def load_pptx(path: Path) -> Iterator[SourceText]:
    """Load what the slides of a presentation say, with tables and notes; hidden slides are not.

    Raises:
        SourceError: it is damaged or encrypted.
        MissingPackageError: the extra `office` is not installed.
    """
    require("office", "reading presentations", "pptx")
    from lxml.etree import LxmlError
    from pptx import Presentation
    from pptx.exc import PythonPptxError

    with _office_errors(path, "PPTX", PythonPptxError, LxmlError):
        check_archive(path)
        with path.open("rb") as file:
            presentation = Presentation(file)
        title = presentation.core_properties.title.strip()
        slides = ["\n\n".join(_slide(slide)) for slide in presentation.slides]
    yield joined(path, title, slides, "slide", markup="markdown")


def load_workbook(path: Path) -> Iterator[SourceText]:
    """Load the sheets of a workbook (XLSX, XLS, ODS) as tables below their names, but hidden ones.

    Raises:
        SourceError: it is damaged or encrypted.
        MissingPackageError: the extra `office` is not installed.
    """
    require("office", "reading workbooks", "python_calamine")
    from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum

    with _office_errors(path, "workbook", CalamineError), path.open("rb") as file:
        if zipfile.is_zipfile(file):
            check_archive(path, trees=False)
            _check_dimensions(path)
        file.seek(0)
        workbook = CalamineWorkbook.from_filelike(file)
        sheets = [
            "\n\n".join(_sheet(workbook.get_sheet_by_name(sheet.name)))
            if sheet.visible == SheetVisibleEnum.Visible
            else ""
            for sheet in workbook.sheets_metadata
        ]
    yield joined(path, "", sheets, "sheet", markup="markdown")


@contextmanager
def _office_errors(path: Path, kind: str, *errors: type[Exception]) -> Iterator[None]:
    damage: tuple[type[Exception], ...] = (
        zipfile.BadZipFile, AttributeError, LookupError, ValueError, EOFError, *errors,
    )  # fmt: skip
    try:
        with reading(path):
            yield
    except damage as error:
        raise SourceError(str(path), f"not a {kind} file, damaged, or encrypted") from error


def _check_dimensions(path: Path) -> None:
    """Refuse a sheet that says itself that its cells lie too far apart: it is read as a rectangle.

    Raises:
        SourceError: there is such a sheet.
    """
    with zipfile.ZipFile(path) as archive:
        for part in filter(_SHEET.fullmatch, archive.namelist()):
            with archive.open(part) as sheet:
                found = _DIMENSION.search(sheet.read(_HEAD))
            if found is None:
                continue
            left, top, right, bottom = (one.decode() for one in found.groups())
            cells = (_column(right) - _column(left) + 1) * (int(bottom) - int(top) + 1)
            if cells > MOST_CELLS:
                problem = f"a sheet spans {cells:,} cells ({left}{top}:{right}{bottom}), more than "
                fix = f"{MOST_CELLS:,}: delete those that lie far from the others"
                raise SourceError(str(path), problem + fix)


def _column(letters: str) -> int:
    return reduce(lambda number, letter: number * 26 + ord(letter) - 64, letters, 0)


def _sheet(sheet: "CalamineSheet") -> Iterator[str]:
    """Yield the name of a sheet, the titles above its table, which are rows of one cell, and it."""
    yield f"## {sheet.name}"
    rows = _cells(sheet)
    titles = list(takewhile(lambda row: len(list(filter(None, row))) == 1, rows))
    if len(titles) == len(rows):  # Such as a list.
        titles = []
    yield from ("".join(row) for row in titles)
    yield table_rows(rows[len(titles) :])


def _cells(sheet: "CalamineSheet") -> list[list[str]]:
    """Write the values of cells; empty rows and the empty columns at both ends are left out."""
    filled = []
    for row in sheet.iter_rows():
        written = list(map(_written, row)) if row.count("") < len(row) else []
        while written and not written[-1]:
            written.pop()
        if written:
            filled.append(written)
    first = min((next(at for at, cell in enumerate(row) if cell) for row in filled), default=0)
    width = max(map(len, filled), default=0)
    return [row[first:] + [""] * (width - len(row)) for row in filled]


def _written(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return " ".join(str(int(value) if whole else value).split())


def _slide(slide: Any) -> Iterator[str]:
    if slide.element.get("show") == "0":
        return
    title = slide.shapes.title
    if title is not None and title.text_frame.text.strip():
        yield f"## {' '.join(title.text_frame.text.split())}"
    for shape in slide.shapes:
        if not _is_on_each_slide(shape) and (title is None or shape.shape_id != title.shape_id):
            yield from _shape(shape)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        yield from filter(None, [slide.notes_slide.notes_text_frame.text.strip()])


def _is_on_each_slide(shape: Any) -> bool:
    """Return whether a shape is the header, footer, date or number of a slide."""
    from pptx.enum.shapes import PP_PLACEHOLDER

    return shape.is_placeholder and shape.placeholder_format.type in {
        PP_PLACEHOLDER.HEADER, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.DATE,
        PP_PLACEHOLDER.SLIDE_NUMBER,
    }  # fmt: skip


def _shape(shape: Any) -> Iterator[str]:
    if hasattr(shape, "shapes"):  # A group.
        for inner in shape.shapes:
            yield from _shape(inner)
    elif shape.has_text_frame:
        paragraphs = shape.text_frame.paragraphs
        lines = [(one.level, " ".join(one.text.split())) for one in paragraphs if one.text.strip()]
        if lines[1:]:
            yield "\n".join(_nested(lines))
        else:
            yield from (line for _, line in lines)
    elif getattr(shape, "has_table", False):
        yield table_rows([[cell.text for cell in row.cells] for row in shape.table.rows])


def _nested(lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Write each line as an item, below the nearest one before it of a lower level."""
    levels = list[int]()
    for level, line in lines:
        while levels and levels[-1] >= level:
            levels.pop()
        yield f"{'  ' * len(levels)}- {line}"
        levels.append(level)


def _docx_blocks(document: "Document") -> Iterator[str]:
    """Yield headings, paragraphs, lists and tables, also those of text boxes and controls."""
    said, numbered = _docx_paragraphs(document), items_of(document)
    items, margins = list[str](), list[str]()
    seen: set[_Element] = set()
    for paragraph, text in said.items():
        table = _outermost(paragraph, tag("tbl"))
        style = _docx_style(paragraph, document)
        if style.lower().startswith("toc "):  # The table of contents.
            continue
        heading = _docx_level(style)
        item = numbered.get(paragraph) or (Item(0, "") if style.startswith("List") else None)
        if table is None and item is not None and not heading:
            mark = item.number if _MARK.fullmatch(item.number) else f"- {item.number}".rstrip()
            margins = margins[: item.level]
            items.append(f"{''.join(margins)}{mark} {text}")
            margins.append(" " * (2 if mark.startswith("-") else len(mark) + 1))
            continue
        if items:
            yield "\n".join(items)
            items, margins = [], []
        if table is None:
            words = " ".join(text.split()) if heading else text.replace("\n", HARD_BREAK)
            yield heading + (f"{item.number} " if item and item.number else "") + words
        elif table not in seen:
            seen.add(table)
            yield table_rows(_docx_rows(table, said, numbered))
    if items:
        yield "\n".join(items)


def _docx_paragraphs(document: "Document") -> "dict[_Element, str]":
    """Return what each paragraph says, in order, with its notes; those that say nothing are not."""
    notes = _docx_notes(document)
    said: dict[_Element, str] = {}
    for paragraph, runs in _docx_runs(document.element.body, document).items():
        inner = (element for run in runs for element in run.element)
        marks = ((element.tag, element.get(_NOTE_ID, "")) for element in inner)
        parts = ["".join(run.text for run in runs).strip(), *(notes.get(mark) for mark in marks)]
        if text := "\n".join(filter(None, parts)):
            said[paragraph] = text
    return said


def _docx_notes(document: "Document") -> dict[tuple[str, str], str]:
    """Return what footnotes and endnotes say, by the tag and id of what refers to them."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import parse_xml

    notes = dict[tuple[str, str], str]()
    for kind in (RELATIONSHIP_TYPE.FOOTNOTES, RELATIONSHIP_TYPE.ENDNOTES):
        try:
            part = document.part.part_related_by(kind)
        except KeyError:
            continue
        for note in parse_xml(part.blob):
            runs = chain.from_iterable(_docx_runs(note, document).values())
            text = " ".join("".join(run.text for run in runs).split())
            notes[f"{note.tag}Reference", note.get(_NOTE_ID, "")] = text
    return notes


def _docx_runs(root: "_Element", document: "Document") -> "dict[_Element, list[Run]]":
    """Return the runs of each paragraph that are shown."""
    from docx.text.run import Run

    gone = {tag("del"), tag("moveFrom"), FALLBACK}
    shown: dict[_Element, list[Run]] = {}
    for element in root.iter(tag("r")):
        run, around = Run(element, document), list(element.iterancestors())
        hidden = run.font.hidden or (element.style is not None and run.style.font.hidden)
        if not hidden and not any(one.tag in gone for one in around):
            paragraph = next(one for one in around if one.tag == tag("p"))
            shown.setdefault(paragraph, []).append(run)
    return shown


def _docx_rows(
    table: "_Element", said: "dict[_Element, str]", numbered: "dict[_Element, Item]"
) -> list[list[str]]:
    def shown(paragraph: "_Element") -> str:
        number = numbered[paragraph].number if paragraph in numbered else ""
        return f"{number} {said[paragraph]}".lstrip()

    rows = [
        [
            text
            for cell in row.iterchildren(tag("tc"))
            for text in (
                " ".join(shown(one) for one in cell.iter(tag("p")) if one in said),
                *[""] * (cell.grid_span - 1),
            )
        ]
        for row in table.iterchildren(tag("tr"))
    ]
    return [row for row in rows if any(row)]


def _docx_style(paragraph: "_Element", document: "Document") -> str:
    from docx.text.paragraph import Paragraph

    style = Paragraph(paragraph, document).style
    return (style.name if style is not None else None) or ""


def _docx_level(style: str) -> str:
    name, _, level = style.partition(" ")
    if name == "Title":
        return "# "
    return "#" * min(int(level), 6) + " " if name == "Heading" and level.isdecimal() else ""


def _outermost(element: "_Element", tag: str) -> "_Element | None":
    return next((one for one in reversed(list(element.iterancestors())) if one.tag == tag), None)
