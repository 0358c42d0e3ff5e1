"""Bytes from the web to text."""

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # Before UTF-16, whose mark it begins with.
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META_WITHIN = 4_096
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
}
"""What browsers decode instead, because pages use characters that the named encoding lacks."""
_FOR_TEXT = re.compile(
    r"utf-(8|16|32)|cp\d|iso(8859|2022)|koi8|mac-|big5|gb|euc_|shift_jis|hz|johab"
)
_TAG = re.compile(rb"<[^>]{0,2000}>")
_SAMPLE = 20_000
_TOLERATED = 0.1
"""Share of damaged characters among those beyond ASCII, up to which a declared encoding holds."""


def decoded(body: bytes, content_type: str) -> str:
    """Return the text of a body.

    A byte order mark decides, then the charset of the HTTP header, then that of a `meta` element,
    each unless the body is plainly written in something else; without one UTF-8, if it is valid;
    else the likeliest encoding. Bytes that mean nothing become U+FFFD.
    """
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    for encoding in filter(None, [*map(_known, _declared(body, content_type)), "utf-8"]):
        text = body.decode(encoding, "replace")
        if _fits(text):
            return text
    return body.decode(_likeliest(body), "replace")


def _declared(body: bytes, content_type: str) -> list[str]:
    header, meta = _HEADER.search(content_type), _META.search(body[:_META_WITHIN])
    unmarked = [
        encoding
        for encoding, start in (("utf-16-le", b"<\0"), ("utf-16-be", b"\0<"))
        if body[:2] == start
    ]
    found = [header[1]] if header else []
    found += unmarked
    # A meta element that can be read byte by byte cannot be in UTF-16, whatever it says.
    meta_name = meta[1].decode("ascii", "replace") if meta else ""
    return [*found, "utf-8" if meta_name.lower().startswith("utf-16") else meta_name]


def _known(name: str) -> str | None:
    """Return Python's name of an encoding of text, None for anything else (`rot13`, `idna`)."""
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return None
    found = _SUPERSETS.get(found, found)
    return found if _FOR_TEXT.match(found) else None


def _fits(text: str) -> bool:
    damaged = text.count("\N{REPLACEMENT CHARACTER}")
    foreign = len(text) - len(text.encode("ascii", "ignore"))
    return damaged <= _TOLERATED * foreign and text.count("\0") <= _TOLERATED * len(text)


def _likeliest(body: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(_TAG.sub(b" ", body[: 10 * _SAMPLE])[:_SAMPLE]).best()
    return (_known(best.encoding) if best else None) or "cp1252"
