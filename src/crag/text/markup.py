"""Markup that says how a text looks, as opposed to what it says."""

import re

# A label has at most 500 characters: brackets without an end would each be read to the last line.
_LINK = re.compile(
    r"!?\[([^\]\n]{0,500})\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"\n]*\")?\)"
)
_REFERENCE = re.compile(r"\[([^\]\n]{1,500})\]\[[^\]\n]{0,500}\]")
_RULE = re.compile(r"^[ \t>]*(?:[-=~^\"'#*+.`_:|][-=~^\"'#*+.`_:| ]{2,})$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*\.\. [\w:.+-]+::[ \t]*", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*\n]+?)(?<=\S)\1(?![\w*])")
PLAIN_TEXT = (".txt", ".text", ".log")
"""How the names of files end that no markup is read in."""
_CELLS = re.compile(r"(?:(?<![ \t])[ \t]+)?\|[ \t]*")


def without_markup(text: str) -> str:
    """Return the words of a text in Markdown or reStructuredText, white space folded.

    Links keep their labels; rules, fences, the marks of headings and quotations, and emphasis go.
    Names, flags and code stay as they are.
    """
    for pattern in (_LINK, _REFERENCE):
        text = pattern.sub(r"\1", text)
    for pattern in (_FENCE, _RULE, _START, _DIRECTIVE):
        text = pattern.sub("", text)
    text = _CELLS.sub(" | ", _EMPHASIS.sub(r"\2", text)).replace("`", "")
    return " ".join(text.split())
