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

_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 17: "mmm-yy", 37: "#,##0",
    38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 45: "mm:ss",
}  # fmt: skip
"""Those that read alike in each country."""
_LEFT_OUT = re.compile(r"_.|\*.|\[(?!\$|[hms]+\])[^\]]*\]", re.IGNORECASE)
"""Room, fillings, colours and conditions."""
_PART = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?)|(?P<other>.)"
)
_OF_MINUTES = re.compile(r"\[?m+\]?:s", re.IGNORECASE)

Formats = Mapping[tuple[int, int], str]
"""From row and column, counted from 0, to the format of a cell."""


def formats_of(archive: zipfile.ZipFile) -> dict[str, Formats]:
    """Return the formats of the cells of each sheet, by its name."""
    styles = xml_of(archive, "xl/styles.xml")
    named = {
        attribute(one, "numFmtId"): attribute(one, "formatCode") for one in styles.iter("{*}numFmt")
    }
    codes = dict[int, str]()
    for form in styles.iter("{*}cellXfs"):
        for number, style in enumerate(form):
            key = attribute(style, "numFmtId") or "0"
            code = named.get(key) or _BUILT_IN.get(int(key), "")
            if code and code not in {"General", "@"}:
                codes[number] = code
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
    archive: zipfile.ZipFile, target: str, codes: Mapping[int, str]
) -> Iterator[tuple[tuple[int, int], str]]:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    path = posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")
    options = {"resolve_entities": False, "no_network": True, "huge_tree": True}
    with archive.open(path) as file:
        for _, row in etree.iterparse(file, tag="{*}row", **options):
            for cell in row:
                if code := codes.get(int(cell.get("s", 0))):
                    column = 0
                    for letter in cell.get("r", "").rstrip("0123456789"):
                        column = column * 26 + ord(letter) - 64
                    yield (int(row.get("r")) - 1, column - 1), code
            row.clear()


def shown(value: Any, code: str = "") -> str:  # noqa: PLR0911 - one for each kind of value
    """Write the value of a cell: a number as its format says, dates as ISO 8601 does.

    A date whose format shows a month and no day is a month.
    """
    code, *others = _LEFT_OUT.sub("", code).split(";")
    match value:
        case dt.timedelta():
            return _duration(round(value.total_seconds()), code)
        case dt.time() if _OF_MINUTES.match(code):
            return _duration(60 * value.minute + value.second, code)
        case dt.datetime() | dt.time():
            text = value.isoformat(timespec="seconds" if value.second else "minutes")
            return text.replace("T", " ")
        case dt.date():
            is_month = "m" in code.lower() and "d" not in code.lower()
            return value.isoformat()[: -3 if is_month else None]
        case float() if value < 0 and others:
            return _number(-value, others[0]) or str(value)
        case float():
            sign = "-" if value < 0 else ""
            plain = str(int(value)) if value.is_integer() else str(value)
            return f"{sign}{_number(abs(value), code)}" if _number(1, code) else plain
        case _:
            return " ".join(str(value).split())


def _duration(seconds: int, code: str) -> str:
    minutes, rest = divmod(seconds, 60)
    if _OF_MINUTES.match(code):
        return f"{minutes:02}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}" + f":{rest:02}" * bool(rest)


def _number(value: float, code: str) -> str:
    """Write a number; nothing where its format is none of digits, such as that of a fraction."""
    parts = [(one.lastgroup, one[one.lastgroup or 0]) for one in _PART.finditer(code)]
    groups = [text for kind, text in parts if kind == "digits"]
    others = {text for kind, text in parts if kind == "other"}
    if not groups or others & {"E", "/", "@"}:
        return ""
    fraction = groups[-1].partition(".")[2]
    digits = f"{value * (100 if '%' in others else 1):{',' * (',' in code)}.{len(fraction)}f}"
    for _ in re.findall(r"#(?=#*$)", fraction):
        digits = digits.removesuffix("0").removesuffix(".")
    wanted = sum(one.partition(".")[0].count("0") for one in groups)
    digits = "0" * (wanted - len(digits.partition(".")[0])) + digits
    written = ""
    for kind, text in reversed(parts):
        if kind == "digits":  # Of several groups, as in 000-00, each takes as many as it is long.
            groups.pop()
            here = len(text) if groups else len(digits)
            written, digits = digits[-here:] + written, digits[:-here]
        else:
            written = text + written
    return " ".join(written.split())
