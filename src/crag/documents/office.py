"""Loaders of office formats: DOCX, PPTX, XLSX and other workbooks."""

import datetime as dt
import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.documents.sources import SourceText, in_units
from crag.errors import SourceError
from crag.extras import require
from crag.text.blocks import Block, Row, escaped
from crag.text.html import blocks_of_html
from crag.text.tables import is_head, with_one_head

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

_MOST_UNPACKED = 400_000_000
"""Bytes of all parts of an archive."""
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SIGNS = {f"{_MATH}den": "/", f"{_MATH}sup": "^", f"{_MATH}sub": "_"}
"""What stands before a part of a formula where it is written on one line."""
_LEVEL, _MOST_BASED = f"{_WORD}pPr/{_WORD}outlineLvl", 10
"""Where a style says how high a heading is, and styles that are based on each other."""
_UNKNOWN = [f"{_WORD}{name}" for name in ("fldSimple", "bdo", "dir", "ruby", "rubyBase")]
"""Elements that mammoth leaves out with all that they hold."""
_DOCX_TEXT = re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml")
_DOCX_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name^='toc '] => !
p[style-name^='TOC'] => !
p[style-name='List Bullet 2'] => ul|ol > li > ul > li:fresh
p[style-name='List Number 2'] => ul|ol > li > ol > li:fresh
"""
_OF_NOTE = re.compile(r"<sup><a [^>]*note-ref-[^>]*>[^<]*</a></sup>| ?<a [^>]*note-ref-[^>]*>↑</a>")
"""Leads to a note of Word, which stands at the end, and back."""
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SERIES = (("tx",), ("cat", "xVal"), ("val", "yVal"))
"""Where a series of a chart has its name, its labels and its values."""
_FIRST_ON_EACH = 10
"""Number from which the placeholders of a slide are its date, footer and number."""
Grid = list[list[str]]
"""The cells of a sheet or table; merged ones are repeated."""
_BUILT_IN = {"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%"}
_LEFT_OUT = re.compile(r"_.|\*.|\[(?!\$)[^\]]*\]|;.*")
"""Room, fillings, colours, conditions, and what negative numbers have of their own."""
_NUMBER = re.compile(r'([^#0?"]*|[^#0?]*")([#0?][#0?,]*)(?:\.([#0?]+))?(,*)([^#0?/]*)')
"""What stands before the digits, those before and after the point, a comma for each factor of 1000
that is not shown, and what stands behind."""
_CURRENCY = re.compile(r"\[\$([^\]-]*)[^\]]*\]")

Formats = Mapping[tuple[int, int], str]
"""From row and column, counted from 0, to the format of a cell."""


def load_docx(path: Path) -> Iterator[SourceText]:
    """Load a Word document with its headings, lists, tables and notes; hidden text is left out."""
    from mammoth import convert_to_html, images

    _check_archive(path)
    with zipfile.ZipFile(path) as archive:
        document = _without_hidden(archive)
    no_pictures = images.img_element(lambda _: {})
    page = convert_to_html(document, style_map=_DOCX_STYLES, convert_image=no_pictures).value
    parts = ([block] for block in blocks_of_html(_OF_NOTE.sub("", page)))
    yield in_units(path, "", parts, "paragraph")


def load_pptx(path: Path) -> Iterator[SourceText]:
    """Load what the slides of a presentation say, with tables and notes; hidden slides are not.

    Raises:
        MissingPackageError: the extra `office` is not installed.
    """
    require("office", "reading presentations", "pptx")
    from pptx import Presentation

    _check_archive(path)
    yield in_units(path, "", map(_slide, Presentation(str(path)).slides), "slide")


def load_workbook(path: Path) -> Iterator[SourceText]:
    """Load the sheets of a workbook (XLSX, XLS, ODS) as tables below their names, but hidden ones.

    Raises:
        MissingPackageError: the extra `office` is not installed.
    """
    require("office", "reading workbooks", "python_calamine")
    parts = (list(_sheet(name, grid)) if grid else [] for name, grid in _sheets(path))
    yield in_units(path, "", parts, "sheet")


def _check_archive(path: Path) -> None:
    """Check that a file that is a ZIP archive inside (DOCX, XLSX, …) can be held in memory.

    Raises:
        SourceError: what it unpacks to is too large.
        zipfile.BadZipFile: it is no archive, or damaged.
    """
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > _MOST_UNPACKED:
        problem = f"it unpacks to {size:,} bytes, more than {_MOST_UNPACKED:,}: split it"
        raise SourceError(str(path), problem)


def _tree(part: bytes) -> Any:
    """Return the root of a part of an archive; entities and the network are not asked."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    return etree.fromstring(part, parser)


def _value(element: Any, name: str) -> str:
    """Return an attribute of an element whatever its namespace; an empty text without one."""
    found = (key for key in element.attrib if key.rpartition("}")[2] == name)
    return next((str(element.attrib[key]) for key in found), "")


def _without_hidden(archive: zipfile.ZipFile) -> io.BytesIO:
    """Copy a Word document without pictures, and without the runs that Word does not show."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    names = [name for name in archive.namelist() if not name.startswith("word/media/")]
    parts = {"word/styles.xml": b"<styles/>"} | {name: archive.read(name) for name in names}
    styles = _tree(parts["word/styles.xml"])
    _name_headings({_value(one, "styleId"): one for one in styles})
    parts["word/styles.xml"] = etree.tostring(styles)
    hiding = {_value(one, "styleId") for one in styles if _vanishes(one.find(f"{_WORD}rPr"))}
    for name in filter(_DOCX_TEXT.fullmatch, names):
        root = _tree(parts[name])
        for run in list(root.iter(f"{_WORD}r")):
            styled = "*/*[local-name()='rStyle'] | ancestor::*[1]/*/*[local-name()='pStyle']"
            is_hidden = any(_value(one, "val") in hiding for one in run.xpath(styled))
            if is_hidden or _vanishes(run.find(f"{_WORD}rPr")):
                run.getparent().remove(run)
        _read_out(root)
        parts[name] = etree.tostring(root)
    seen = io.BytesIO()
    with zipfile.ZipFile(seen, "w") as copy:
        for name, part in parts.items():
            copy.writestr(name, part)
    return seen


def _read_out(root: Any) -> None:
    """Make plain text of formulas, and leave what mammoth does not know but for what it holds."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    for part in root.iter(*_SIGNS):
        for text in list(part.iter(f"{_MATH}t"))[:1]:
            text.text = f"{_SIGNS[part.tag]}{text.text or ''}"
    for part in root.iter(f"{_MATH}r", f"{_MATH}t"):
        part.tag = part.tag.replace(_MATH, _WORD)
    etree.strip_elements(root, f"{_WORD}rt", with_tail=False)
    etree.strip_tags(root, *_UNKNOWN, f"{_MATH}*")


def _name_headings(styles: Mapping[str, Any]) -> None:
    """Give styles that are headings, by their level or by what they are based on, Word's name."""
    levels = {
        identifier: "".join(_value(one, "val") for one in style.iterfind(_LEVEL))
        for identifier, style in styles.items()
    }
    for identifier, style in [*styles.items()] * _MOST_BASED:
        for base in style.iterfind(f"{_WORD}basedOn"):
            levels[identifier] = levels[identifier] or levels.get(_value(base, "val"), "")
    for identifier, style in styles.items():
        if levels[identifier] in {*"012345"}:
            for name in style.iterfind(f"{_WORD}name"):
                name.set(f"{_WORD}val", f"heading {int(levels[identifier]) + 1}")


def _vanishes(properties: Any) -> bool:
    mark = None if properties is None else properties.find(f"{_WORD}vanish")
    return mark is not None and _value(mark, "val") not in {"0", "false", "off"}


def _sheets(path: Path) -> Iterator[tuple[str, Grid]]:
    """Yield the sheets of a workbook with their names; hidden ones are empty."""
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    formats: dict[str, Formats] = {}
    if zipfile.is_zipfile(path):
        _check_archive(path)
        with zipfile.ZipFile(path) as archive:
            formats = _formats_of(archive) if "xl/styles.xml" in archive.namelist() else {}
    with CalamineWorkbook.from_path(path) as workbook:
        for sheet in workbook.sheets_metadata:
            is_visible = sheet.visible == SheetVisibleEnum.Visible
            found = workbook.get_sheet_by_name(sheet.name) if is_visible else None
            yield sheet.name, _grid(found, formats.get(sheet.name, {})) if found else []


def _grid(sheet: "CalamineSheet", formats: Formats) -> Grid:
    top, left = sheet.start or (0, 0)
    cells = [
        [
            "" if value == "" else shown(value, formats.get((row, column), ""))
            for column, value in enumerate(values, left)
        ]
        for row, values in enumerate(sheet.to_python(), top)
    ]
    for first, last in sheet.merged_cell_ranges or ():
        if first >= (top, left):
            text = cells[first[0] - top][first[1] - left]
            for row in cells[first[0] - top : last[0] - top + 1]:
                row[first[1] - left : last[1] - left + 1] = [text] * (last[1] - first[1] + 1)
    return cells


def _formats_of(archive: zipfile.ZipFile) -> dict[str, Formats]:
    """Return the formats of the cells of each sheet, by its name."""
    styles = _tree(archive.read("xl/styles.xml"))
    named = _BUILT_IN | {
        _value(one, "numFmtId"): _value(one, "formatCode") for one in styles.iter("{*}numFmt")
    }
    forms = [_value(one, "numFmtId") for form in styles.iter("{*}cellXfs") for one in form]
    codes = {str(n): named[one] for n, one in enumerate(forms) if one in named}
    relations = {
        _value(one, "Id"): _value(one, "Target")
        for one in _tree(archive.read("xl/_rels/workbook.xml.rels"))
    }
    return {
        _value(sheet, "name"): dict(_formats(archive, relations[_value(sheet, "id")], codes))
        for sheet in _tree(archive.read("xl/workbook.xml")).iter("{*}sheet")
        if codes
    }


def _formats(
    archive: zipfile.ZipFile, target: str, codes: Mapping[str, str]
) -> Iterator[tuple[tuple[int, int], str]]:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    path = posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")
    options = {"resolve_entities": False, "no_network": True, "huge_tree": True}
    with archive.open(path) as file:
        for _, row in etree.iterparse(file, tag="{*}row", **options):
            for cell in row:
                if code := codes.get(cell.get("s", "0")):
                    column = 0
                    for letter in cell.get("r", "").rstrip("0123456789"):
                        column = column * 26 + ord(letter) - 64
                    yield (int(row.get("r")) - 1, column - 1), code
            row.clear()


def shown(value: Any, code: str = "") -> str:
    """Write the value of a cell: a number as its format says, dates as ISO 8601 does."""
    match value:
        case dt.timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}" + f":{seconds:02}" * bool(seconds)
        case dt.datetime() | dt.time():
            text = value.isoformat(timespec="seconds" if value.second else "minutes")
            return text.replace("T", " ")
        case float():
            plain = str(int(value)) if value.is_integer() else str(value)
            return _number(value, _LEFT_OUT.sub("", code)) or plain
        case _:
            return " ".join(str(value).split())


def _number(value: float, code: str) -> str:
    """Write a number; nothing where its format is none of digits, such as that of a fraction."""
    found = _NUMBER.fullmatch(_CURRENCY.sub(r"\1", code))
    if found is None or re.match("E[+-]", found[5]):
        return ""
    before, whole, fraction, unseen, after = (part or "" for part in found.groups())
    grouped = whole.rstrip(",")
    share = (100 if "%" in before + after else 1) / 1000 ** len(whole[len(grouped) :] + unseen)
    digits = f"{abs(value) * share:{',' * (',' in grouped)}.{len(fraction)}f}"
    digits = digits.zfill(whole.count("0") + len(fraction) + bool(fraction))
    if fraction.endswith("#"):
        digits = digits.rstrip("0").rstrip(".")
    written = f"{'-' * (value < 0)}{before}{digits}{after}"
    return " ".join(re.sub(r'["\\]', "", written).split())


def _sheet(name: str, grid: Grid) -> Iterator[Block]:
    """Yield the name of a sheet, and its tables with the titles above them.

    Rows of one cell above a table are titles. Where an empty row is followed by a row of words
    alone, above numbers, another table begins.
    """
    yield _text(name, level=2)
    for rows in _tables(grid):
        titles = list(takewhile(lambda row: len(set(filter(None, row))) == 1, rows))
        if len(titles) == len(rows) and len(rows) > 1:  # Such as a list.
            titles = []
        yield from (_text(next(filter(None, row))) for row in titles)
        if rows[len(titles) :]:
            yield _table(rows[len(titles) :])


def _tables(rows: Sequence[list[str]]) -> Iterator[list[list[str]]]:
    table: list[list[str]] = []
    for is_filled, group in groupby(rows, key=any):
        part = list(group)
        if not is_filled:
            continue
        if table and is_head(part[0]) and not all(map(is_head, part[1:])):
            yield table
            table = []
        table = table + part
    if table:
        yield table


def _table(rows: Sequence[Sequence[str]]) -> Block:
    """Return a table of plain texts."""
    table = [Row([escaped(" ".join(cell.split())) for cell in row], 1, 1) for row in rows]
    return Block("table", 1, 1, rows=with_one_head(table))


def _text(text: str, level: int = 0) -> Block:
    return Block("heading" if level else "text", 1, 1, escaped(" ".join(text.split())), level)


def _slide(slide: Any) -> list[Block]:
    if slide.element.get("show") == "0":
        return []
    title = slide.shapes.title
    page = f"<h2>{escape(title.text_frame.text)}</h2>" if title is not None else ""
    for shape in slide.shapes:
        on_each = shape.is_placeholder and shape.placeholder_format.idx >= _FIRST_ON_EACH
        if not on_each and (title is None or shape.shape_id != title.shape_id):
            page += _shape(shape)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.paragraphs
        page += "".join(f"<p>{escape(one.text)}</p>" for one in notes)
    return blocks_of_html(page)


def _shape(shape: Any) -> str:
    """Write what a shape shows as HTML; several lines are a list."""
    if hasattr(shape, "shapes"):  # A group.
        return "".join(map(_shape, shape.shapes))
    if shape.has_text_frame:
        lines = [escape(one.text) for one in shape.text_frame.paragraphs if one.text.strip()]
        text = "</li><li>".join(lines)
        return f"<ul><li>{text}</li></ul>" if lines[1:] else f"<p>{text}</p>"
    if not getattr(shape, "has_table", False):
        return "".join(_drawn(shape))
    rows = (
        "".join(
            f"<td colspan={cell.span_width} rowspan={cell.span_height}>{escape(cell.text)}</td>"
            for cell in row.cells
            if not cell.is_spanned
        )
        for row in shape.table.rows
    )
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _drawn(shape: Any) -> Iterator[str]:
    """Write what a chart or a diagram says; each series of a chart is a row."""
    from pptx.oxml import parse_xml

    for one in shape.element.iter("{*}chart", "{*}relIds"):
        relation = shape.part.rels.get(_value(one, "id") or _value(one, "dm"))
        if relation is None or relation.is_external:
            continue
        root = parse_xml(relation.target_part.blob)
        texts = ["".join(line.itertext("{*}t")) for line in root.iter(f"{_DRAWING}p")]
        yield from (f"<p>{escape(text)}</p>" for text in texts if text.strip())
        rows = list[list[str]]()
        for series in root.iter("{*}ser"):
            name, labels, values = (
                [one.text or "" for tag in tags for one in series.iterfind(f"{{*}}{tag}//{{*}}v")]
                for tags in _SERIES
            )
            rows = [*(rows or [["", *labels]]), [" ".join(name), *values]]
        cells = ("</td><td>".join(map(escape, row)) for row in rows)
        yield f"<table>{''.join(f'<tr><td>{row}</td></tr>' for row in cells)}</table>"
