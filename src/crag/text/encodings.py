"""Bytes to text: encodings, binary content, characters that cannot be stored."""

import re

from w3lib.encoding import (
    html_body_declared_encoding,
    http_content_type_encoding,
    read_bom,
    to_unicode,
)

from crag.errors import ContentError
from crag.text.language import LANGUAGES, language_of

_PLAIN = ("text/plain", "text/markdown", "text/x-markdown")
_FOR_TEXT = re.compile(
    r"utf-(8|16|32)|cp\d|iso(8859|2022)|koi8|mac-|big5|gb|euc_|shift_jis|hz|johab"
)
_NOT_LATIN = re.compile(rb"[\x80-\xff]{4,}|(?:[\x80-\xff][@-~\x80-\xff]){4,}")
"""Letters beyond ASCII stand alone in words of Latin letters, and together in other scripts."""
_RUSSIAN = "оеаинтсрвлкмдпуыя"
_LETTERS = {
    "cp1251": _RUSSIAN, "koi8_r": _RUSSIAN, "cp866": _RUSSIAN, "cp1253": "αοιετνσηρπκμλςυάέήίόύώ",
    "cp1255": "אבהוילמםנרשת", "cp1256": "ابتدرعلمنهوي", "cp874": "กงดตทนปมยรลวสอะาเแ่้ีั",
}  # fmt: skip
"""The most frequent letters of the scripts of encodings with one byte a character."""
_USUAL = {
    **{name: b"[" + letters.encode(name) + b"]" for name, letters in _LETTERS.items()},
    "cp949": rb"[\xa1\xa3\xb0-\xc8][\xa1-\xfe]",
    "gb18030": rb"[\xa1\xa3\xb0-\xd7][\xa1-\xfe]",
    "euc_jp": rb"[\xa1\xa3-\xa5\xb0-\xcf].",
    "big5": rb"[\xa1\xa4-\xc6].",
    "cp932": rb"[\x81-\x83\x88-\x97].",
}
"""What most characters beyond ASCII are, if a text is in an encoding; of equals the first one."""
_CENTRAL = frozenset(["cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq", "sr"])
_LATIN = {
    "cp1252": LANGUAGES - _CENTRAL - {"tr", "lt", "lv"},
    "cp1250": _CENTRAL,
    "cp1254": {"tr"},
    "cp1257": {"lt", "lv"},
}
"""Encodings of Latin letters and their languages; the first one if it is unclear."""
_LATIN_9 = re.compile(rb"[^\x80-\x9f]*\xa4[^\x80-\x9f]*")
"""What has a euro sign in ISO 8859-15, and none of the signs that cp1252 has beside it."""
_SAMPLE = 20_000
"""Bytes from which an encoding is guessed: guessing takes time for each of them."""
_MOST_BINARY = 0.05
"""The share of characters that texts do not have above which a body is binary."""
_BINARY = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\N{REPLACEMENT CHARACTER}]")
_TOLERATED = 0.1
"""Share of damaged characters among those beyond ASCII, up to which a declared encoding holds."""


def decoded(body: bytes, content_type: str) -> str:
    """Return the text of a file or of the body of a web page.

    A byte order mark decides, then the charset of `content_type` (the HTTP header, or just the type
    of a file), then in HTML that of a `meta` element, each unless the body is plainly written in
    something else; without one UTF-8, if it is valid; else the likeliest encoding. Bytes that mean
    nothing become U+FFFD.

    Raises:
        ContentError: the body is binary.
    """
    # A meta element in a plain text, such as one about HTML, says nothing about that text, and no
    # body that is read byte by byte up to one is in UTF-16.
    is_plain = content_type.lower().startswith(_PLAIN)
    meta = "" if is_plain else html_body_declared_encoding(body) or ""
    named = [read_bom(body)[0], http_content_type_encoding(content_type)]
    named += ["utf-8" if meta.startswith("utf-16") else meta, "utf-8"]
    read = (to_unicode(body, name) for name in named if name and _FOR_TEXT.match(name))
    text = next(filter(_fits, read), None)
    text = body.decode(likeliest(body), "replace") if text is None else text.removeprefix("\ufeff")
    if len(_BINARY.findall(text)) > _MOST_BINARY * len(text):
        raise ContentError("its content looks binary, not like a text")
    return text


def storable(text: str) -> str:
    """Replace what neither stores nor the tokenizer takes (lone surrogates, NUL), one for one."""
    return text.encode("utf-8", errors="replace").decode().replace("\0", "\ufffd")


def likeliest(body: bytes) -> str:
    """Guess the encoding of a text that is not UTF-8.

    Of those of Latin letters most can be read as most others, but few fit the language that the
    letters of ASCII show already.
    """
    sample = body[:_SAMPLE]
    for name, high in (("utf-16-be", sample[::2]), ("utf-16-le", sample[1::2])):
        if 2 * high.count(0) > len(high):  # It has no byte order mark.
            return name
    foreign = len(sample) - len(sample.decode("ascii", "ignore"))
    together = b"".join(_NOT_LATIN.findall(sample))
    if 2 * len(together) - 2 * len(together.decode("ascii", "ignore")) > foreign:
        return max(_USUAL, key=lambda name: _share_of_usual(sample, name))
    fitting = (
        name
        for name, languages in _LATIN.items()
        if language_of(sample.decode(name, "replace")) in languages
    )
    name = next(fitting, "cp1252")
    return "iso8859-15" if name == "cp1252" and _LATIN_9.fullmatch(sample) else name


def _share_of_usual(sample: bytes, encoding: str) -> float:
    text = sample.decode(encoding, "replace")
    characters = [one.encode(encoding, "ignore") for one in text if not one.isascii()]
    usual = re.compile(_USUAL[encoding], re.DOTALL)
    return sum(map(bool, map(usual.fullmatch, characters))) / max(len(characters), 1)


def _fits(text: str) -> bool:
    damaged = text.count("\N{REPLACEMENT CHARACTER}")
    foreign = len(text) - len(text.encode("ascii", "ignore"))
    return damaged <= _TOLERATED * foreign and text.count("\0") <= _TOLERATED * len(text)
