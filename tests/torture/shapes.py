"""Texts of one shape each that make careless patterns read them over and over."""

from collections.abc import Iterator

REPEATED = (
    *" \n\t[](<*`#-=|a0.:\\“あ\u200d\u180b\x1b\u00a0!?'\"&_~^{/,\ufe0fAİ",
    "[a](", "[a](b)", "![", "[1,", "[1 ", "< ", "a.b", "a. ", "# a.\n\n", "#\n", "```a\n",
    "````\n", "```{toctree}\n", "`` ` ", "~~~x\n", ":a", ":a:`", "`a <", "`a ", "<!--", "-->",
    "<p>", "<p", "<b ", "</p>", "&#", "| ", "|\n", "a|", "\n \n", ". a", "1. ", "A. ", "e.g. ",
    "x? ", "- a\n", "  - ", "a\n", "=\n", "::\n\n", ".. a::\n", "> ", "a b ", "a,", "\x1b[0",
    "\x1b]", "\u200da", "\ufe0f\u200d", "a\ufe0f", "\u180b\u200d", "sk-", "no retrieval",
    "Bearer ", "http://a", "http://", "title: ", "{#", "\r", "\r\n", "*a ", "**a", "_a_", "](",
    '"text":"', "yes or ", "1843. ", "<div>", "<table><tr>", "<a href='", "<meta ", "A) x\n", "; ",
)  # fmt: skip
WITHIN = (
    ("<<", " ", ""), ("[no", " ", "x"), ("[1", " ", "x"), ("a", " ", "b"), ("# a", " ", "b"),
    ("# ", "#", "x"), ("title: a", " ", "b"), ("[a](", "x", ""), ("[a](", "[a](x", "\n)"),
    ("`a", " ", "b"), ("<p style='clip:rect(0", " ", "x'>a</p>"),
    ("<p style='clip:rect(0 ", "0 ", "x'>a</p>"), ("<p style='transform:scale(", "0", "x'>a</p>"),
    ("<p style='transform:scale(", " ", "x'>a</p>"), ("<meta charset=", " ", "x>"),
    ("```\n", "x\n", ""), ("---\ntitle: a", " ", "b\n---\n"), ("\n\n", " ", "x"),
    ("search", " ", "x"), ("A)", " ", "x"), ("# a", "\t", "{#b"), ("{:", " ", "x"),
    ("<|", " ", "x"), ("<|a|", " ", "x"), ("[utility :", " ", "x"), (".. ", " ", "x"),
    (":a:`", "x", ""), ("data:", "a", ""), ("1", "2", "."), ("", "-", "x"), ("", "ab-", ""),
    ("", "a'b", ""), ("<p", "a=b ", ">x</p>"), ("<p style='", "a:b;", "'>x</p>"),
    ("<p style='", "/*", "'>x</p>"), ("<p style='", "\\0", "'>x</p>"), ("<script>", "a", ""),
    ("&", "a", ""), (f"{'a|' * 280}\n{'-|' * 280}\n", "|\n", ""), ("", ".. _a:\n", ""),
    ("".join(f".. |{n}| replace:: |{n + 1}| |{n + 1}|\n" for n in range(20)), "|0| ", "中。" * 900),
)  # fmt: skip
"""What stands before, what is repeated, and what stands after it."""


def shapes(length: int) -> Iterator[str]:
    """Yield a text of about `length` characters for each shape."""
    for before, piece, after in (*(("", piece, "") for piece in REPEATED), *WITHIN):
        yield shape(length, piece, before, after)


def shape(length: int, piece: str, before: str = "", after: str = "") -> str:
    """Repeat a piece, between what stands before and after it."""
    return before + (piece * (length // len(piece) + 1))[:length] + after
