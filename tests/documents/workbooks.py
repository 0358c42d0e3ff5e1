"""Workbooks written by hand, whose cells stand where no library would put them."""

import io
import zipfile
from collections.abc import Mapping

_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MAIN = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
_RELATIONS = "application/vnd.openxmlformats-package.relationships+xml"


def workbook_of(cells: Mapping[str, str]) -> bytes:
    """Return a workbook of these cells by place, each in a row of its own."""
    rows = "".join(
        f'<row r="{place.lstrip(_LETTERS)}"><c r="{place}" t="inlineStr">'
        f"<is><t>{text}</t></is></c></row>"
        for place, text in cells.items()
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        f'ContentType="{_RELATIONS}"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{_MAIN}"/></Types>',
        "_rels/.rels": _relation("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="S1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relation("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData>'
        "</worksheet>",
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return written.getvalue()


def _relation(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{_OFFICE}/{kind}" Target="{target}"/></Relationships>'
    )
