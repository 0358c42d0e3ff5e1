"""Small files that become large: generated workbooks, presentations, documents and books."""

import io
import random
import string
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from pptx import Presentation

from tests.torture.documents import docx

_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_ODF = "urn:oasis:names:tc:opendocument:xmlns"
_BLOCK = 1 << 20
_CAPITALS = string.ascii_uppercase
_COLUMNS, _ROWS = 16_384, 1_048_576
_FEW, _MANY = (2, 60), (300_000, 2_000_000)
"""How often something is repeated: its text is small, or far beyond any limit."""


def bombs(number: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of so many files, the kinds and shapes in turn."""
    makers = [(kind, shape, make) for (kind, shape), make in MAKERS.items()]
    for at in range(number):
        kind, shape, make = makers[at % len(makers)]
        yield f"{at:03}-{shape}.{kind}", make(random.Random(f"{seed}-{at}"))  # noqa: S311 - no secret


def workbook_of(cells: Mapping[str, str], dimension: str = "") -> bytes:
    """Return a workbook of these cells by place, each in a row of its own."""
    rows = [
        f'<row r="{place.lstrip(_CAPITALS)}">{_cell(place, text)}</row>'
        for place, text in cells.items()
    ]
    return _workbook(rows, dimension)


def sparse_workbook(random: random.Random) -> bytes:
    """Return two cells, far apart, in a sheet that tells its dimension, or does not, or lies."""
    column, row = _letters(random.choice([1, 100, _COLUMNS])), random.choice([200, 200_000, _ROWS])
    told = random.choice([f"A1:{column}{row}", "A1:B2", ""])
    return workbook_of({"A1": "first", f"{column}{row}": f"last {random.random()}"}, told)


def deep_workbook(random: random.Random) -> bytes:
    """Return a cell whose text lies within many elements."""
    depth = random.randint(1_000, 300_000)
    return _workbook([f'<row r="1"><c r="A1" t="inlineStr">{_nested("is", depth, "t")}</c></row>'])


def repeated_workbook(random: random.Random) -> bytes:
    """Return one long text that many cells share, or one sheet under many names."""
    text = f"{random.random()} " * random.randint(20, 1_500)
    many = random.randint(*random.choice([_FEW, (5_000, 60_000)]))
    if random.random() < 0.3:
        return _workbook([f'<row r="1">{_cell("A1", text)}</row>'], names=min(many, 5_000))
    rows = (f'<row r="{at}"><c r="A{at}" t="s"><v>0</v></c></row>' for at in range(1, many))
    return _workbook(rows, shared=text)


def large_workbook(random: random.Random) -> bytes:
    """Return a sheet of up to 300 MB that says the same again and again, or nothing at all."""
    row = random.choice([f"<row>{_cell('A1', 'x' * 500)}</row>", "<row></row>", " " * 500])
    return _workbook([_BLOCK // len(row) * row] * random.randint(20, 300))


def sparse_sheet(random: random.Random) -> bytes:
    """Return a sheet of OpenDocument whose empty cells and rows are counted, not written."""
    wide, high = random.choice([1, 100, _COLUMNS]), random.choice([10, 100_000, _ROWS])
    empty = f'<table:table-cell table:number-columns-repeated="{wide}"/>'
    row = f'<table:table-row table:number-rows-repeated="{high}">{empty}{_odf_cell("a")}'
    return _opendocument(f"{row}</table:table-row>")


def deep_sheet(random: random.Random) -> bytes:
    """Return a cell whose text lies within many elements."""
    inner = _nested("text:span", random.randint(1_000, 300_000), "text:p")
    return _opendocument(
        f"<table:table-row><table:table-cell>{inner}</table:table-cell></table:table-row>"
    )


def repeated_sheet(random: random.Random) -> bytes:
    """Return a row that is to be repeated."""
    many = random.randint(*random.choice([_FEW, _MANY]))
    cell = _odf_cell(f"{random.random()} " * 20, random.choice([1, 3]))
    row = f'<table:table-row table:number-rows-repeated="{many}">{cell}</table:table-row>'
    return _opendocument(row)


def large_sheet(random: random.Random) -> bytes:
    """Return a sheet of up to 200 MB."""
    row = f"<table:table-row>{_odf_cell('x' * 500)}</table:table-row>"
    return _opendocument(_BLOCK // len(row) * row, random.randint(20, 200))


def sparse_document(random: random.Random) -> bytes:
    """Return a Word document of one table with nothing in most cells."""
    cells = "<w:tc/>" * random.randint(1_000, 400_000)
    return docx(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>{_paragraph(random)}")


def deep_document(random: random.Random) -> bytes:
    """Return a Word document of tables within tables."""
    depth = random.randint(50, 60_000)
    start, end = "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"
    return docx(start * depth + _paragraph(random) + end * depth)


def repeated_document(random: random.Random) -> bytes:
    """Return a Word document that says one thing again and again."""
    return docx(_paragraph(random) * random.randint(*random.choice([_FEW, (100_000, 250_000)])))


def large_document(random: random.Random) -> bytes:
    """Return a Word document of up to 120 MB."""
    return docx(" " * _BLOCK * random.randint(20, 120) + _paragraph(random))


def sparse_slides(random: random.Random) -> bytes:
    """Return a slide of many shapes without text."""
    shape = (
        '<p:sp><p:nvSpPr><p:cNvPr id="9" name=""/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/></p:sp>'
    )
    return _presentation(shape * random.randint(1_000, 200_000))


def deep_slides(random: random.Random) -> bytes:
    """Return a slide of groups within groups."""
    head = '<p:grpSp><p:nvGrpSpPr><p:cNvPr id="9" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>'
    depth = random.randint(50, 60_000)
    return _presentation(f"{head}<p:grpSpPr/>" * depth + "</p:grpSp>" * depth)


def repeated_slides(random: random.Random) -> bytes:
    """Return a slide that says one thing again and again."""
    paragraph = f"<a:p><a:r><a:t>{random.random()} {'word ' * 40}</a:t></a:r></a:p>"
    many = random.randint(*random.choice([_FEW, (100_000, 150_000)]))
    return _presentation(
        '<p:sp><p:nvSpPr><p:cNvPr id="9" name=""/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
        f"<p:txBody><a:bodyPr/>{paragraph * many}</p:txBody></p:sp>"
    )


def large_slides(random: random.Random) -> bytes:
    """Return a slide of up to 120 MB."""
    return _presentation(" " * _BLOCK * random.randint(20, 120))


def sparse_book(random: random.Random) -> bytes:
    """Return a book of many chapters that say nothing."""
    many = random.randint(100, 20_000)
    return _book({f"c{at}.xhtml": "<p/>" for at in range(many)})


def deep_book(random: random.Random) -> bytes:
    """Return a chapter of elements within each other."""
    tag = random.choice(["div", "blockquote", "table", "ul", "b"])
    return _book({"c.xhtml": _nested(tag, random.randint(100, 200_000), "p")})


def repeated_book(random: random.Random) -> bytes:
    """Return a book whose order names one chapter again and again, or many equal ones."""
    text = f"<p>{random.random()} {'word ' * random.randint(20, 4_000)}</p>"
    many = random.randint(*random.choice([_FEW, (20_000, 60_000)]))
    if random.random() < 0.5:
        return _book({"c.xhtml": text}, times=many)
    return _book({f"c{at}.xhtml": text for at in range(min(many, 4_000))})


def large_book(random: random.Random) -> bytes:
    """Return a chapter of up to 120 MB, or many that are as large together."""
    piece = random.choice(["<p>", " ", "<br/>", "x", "&amp;"])
    parts = random.choice([1, 40])
    size = _BLOCK * random.randint(20, 120) // parts // len(piece)
    return _book({f"c{at}.xhtml": piece * size for at in range(parts)})


MAKERS: dict[tuple[str, str], Callable[[random.Random], bytes]] = {
    ("xlsx", "sparse"): sparse_workbook,
    ("docx", "deep"): deep_document,
    ("epub", "repeated"): repeated_book,
    ("ods", "large"): large_sheet,
    ("pptx", "sparse"): sparse_slides,
    ("xlsx", "deep"): deep_workbook,
    ("ods", "repeated"): repeated_sheet,
    ("epub", "large"): large_book,
    ("docx", "sparse"): sparse_document,
    ("pptx", "deep"): deep_slides,
    ("xlsx", "repeated"): repeated_workbook,
    ("docx", "large"): large_document,
    ("ods", "sparse"): sparse_sheet,
    ("epub", "deep"): deep_book,
    ("docx", "repeated"): repeated_document,
    ("xlsx", "large"): large_workbook,
    ("epub", "sparse"): sparse_book,
    ("ods", "deep"): deep_sheet,
    ("pptx", "repeated"): repeated_slides,
    ("pptx", "large"): large_slides,
}
"""By suffix and shape; the first of them have all kinds and all shapes."""


def _zip(parts: dict[str, str | list[str]]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, text in parts.items():
            with archive.open(name, "w") as part:
                for piece in text if isinstance(text, list) else [text]:
                    part.write(piece.encode())
    return written.getvalue()


def _nested(tag: str, depth: int, inmost: str) -> str:
    return f"<{tag}>" * depth + f"<{inmost}>deep</{inmost}>" + f"</{tag}>" * depth


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, digit = divmod(column - 1, 26)
        letters = chr(65 + digit) + letters
    return letters


def _cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def _workbook(
    rows: "Iterator[str] | list[str]", dimension: str = "", shared: str = "", names: int = 1
) -> bytes:
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    relation = f'<Relationship Id="r{{}}" Type="{_OFFICE}/{{}}" Target="{{}}"/>'
    head = f'<worksheet xmlns="{_SHEET}">'
    head += f'<dimension ref="{dimension}"/>' if dimension else ""
    sheets = [f'<sheet name="S{at}" sheetId="{at}" r:id="r1"/>' for at in range(1, names + 1)]
    return _zip({
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{main}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'{relation.format(1, "officeDocument", "xl/workbook.xml")}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>'
        f'{"".join(sheets)}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'{relation.format(1, "worksheet", "worksheets/sheet1.xml")}'
        f'{relation.format(2, "sharedStrings", "sharedStrings.xml")}</Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{_SHEET}"><si><t>{shared}</t></si></sst>',
        "xl/worksheets/sheet1.xml": [f"{head}<sheetData>", *rows, "</sheetData></worksheet>"],
    })  # fmt: skip


def _odf_cell(text: str, times: int = 1) -> str:
    repeated = f'table:number-columns-repeated="{times}"'
    start = f'<table:table-cell office:value-type="string" {repeated}>'
    return f"{start}<text:p>{text}</text:p></table:table-cell>"


def _opendocument(rows: str, times: int = 1) -> bytes:
    names = " ".join(f'xmlns:{name}="{_ODF}:{name}:1.0"' for name in ("office", "table", "text"))
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    head = f"<office:document-content {names}><office:body><office:spreadsheet><table:table "
    end = "</table:table></office:spreadsheet></office:body></office:document-content>"
    return _zip({
        "mimetype": kind,
        "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>",
        "content.xml": [f'{head}table:name="S">', *[rows] * times, end],
    })  # fmt: skip


def _paragraph(random: random.Random) -> str:
    return f"<w:p><w:r><w:t>{random.random()} {'word ' * 40}</w:t></w:r></w:p>"


@cache
def _empty_slide() -> dict[str, str]:
    written = io.BytesIO()
    presentation = Presentation()
    presentation.slides.add_slide(presentation.slide_layouts[6])
    presentation.save(written)
    with zipfile.ZipFile(written) as archive:
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
        return {name: archive.read(name).decode() for name in names}


def _presentation(shapes: str) -> bytes:
    parts = dict(_empty_slide())
    slide = "ppt/slides/slide1.xml"
    parts[slide] = parts[slide].replace("</p:spTree>", f"{shapes}</p:spTree>")
    return _zip(dict(parts))


def _book(chapters: dict[str, str], times: int = 1) -> bytes:
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters) * times
    return _zip({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="book.opf"/>'
        "</rootfiles></container>",
        "book.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
        **{name: f"<html><body>{text}</body></html>" for name, text in chapters.items()},
    })  # fmt: skip
