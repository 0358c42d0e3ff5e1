"""Values of the cells of an XLSX workbook as the sheet shows them.

A cell holds 0.195, 742 or 1.5, and its format says that people read 19.5%, 00742 or 36:00.
"""

import datetime as dt
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from crag.documents.texts import attribute, xml_of

_BUILT_IN = {"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%"}
_LEFT_OUT = re.compile(r"_.|\*.|\[(?!\$)[^\]]*\]|;.*")
"""Room, fillings, colours, conditions, and what negative numbers have of their own."""
_NUMBER = re.compile(r'([^#0?"]*|[^#0?]*")([#0?][#0?,]*)(?:\.([#0?]+))?([^#0?/]*)')
"""What stands before the digits, those before and after the point, and what stands behind."""
_CURRENCY = re.compile(r"\[\$([^\]-]*)[^\]]*\]")

Formats = Mapping[tuple[int, int], str]
"""From row and column, counted from 0, to the format of a cell."""


def formats_of(archive: zipfile.ZipFile) -> dict[str, Formats]:
    """Return the formats of the cells of each sheet, by its name."""
    styles = xml_of(archive, "xl/styles.xml")
    named = _BUILT_IN | {
        attribute(one, "numFmtId"): attribute(one, "formatCode") for one in styles.iter("{*}numFmt")
    }
    forms = [attribute(one, "numFmtId") for form in styles.iter("{*}cellXfs") for one in form]
    codes = {str(n): named[one] for n, one in enumerate(forms) if one in named}
    relations = {
        attribute(one, "Id"): attribute(one, "Target")
        for one in xml_of(archive, "xl/_rels/workbook.xml.rels")
    }
    return {
        attribute(sheet, "name"): dict(_formats(archive, relations[attribute(sheet, "id")], codes))
        for sheet in xml_of(archive, "xl/workbook.xml").iter("{*}sheet")
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
    if found is None or re.match("E[+-]", found[4]):
        return ""
    before, whole, fraction, after = (part or "" for part in found.groups())
    share = 100 if "%" in before + after else 1
    digits = f"{abs(value) * share:{',' * (',' in whole)}.{len(fraction)}f}"
    digits = digits.zfill(whole.count("0") + len(fraction) + bool(fraction))
    if fraction.endswith("#"):
        digits = digits.rstrip("0").rstrip(".")
    written = f"{'-' * (value < 0)}{before}{digits}{after}"
    return " ".join(re.sub(r'["\\]', "", written).split())
