"""Markdown: its blocks, and a text without what readers of the page do not see."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from crag.retrieval.blocks import Block, Kind, line_offsets, with_line_feeds_only
from crag.text.wholes import without_blanks

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_KINDS: dict[str, Kind] = {
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}
_TABLE_HEAD = 2
"""Lines: the header and the rule below it."""
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)|\A\+\+\+\n(?:.*\n)*?\+\+\+\s*?(?:\n|\Z)"
)
_TITLE = re.compile(r"^title[ \t]*[:=](.+)$", re.MULTILINE | re.IGNORECASE)
_TARGET = r"(?:\([^)\n]*\)|\[[^\]\n]*\])"
_PICTURE = rf"!\[[^\]\n]*\]{_TARGET}"
_NOT_TEXT = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})\{(?:toctree|contents|currentmodule|include|literalinclude|image"
    r"|index|tableofcontents)\}(?:.*\n)*?[ \t]*(?P=fence)[ \t]*$"
    r"|^\([\w .:-]+\)=[ \t]*$"  # MyST: targets, roles
    r"|\{[a-z][\w:-]*\}(?=`)|(?<=\}`)[~!](?=\w)"
    r"|^[ \t]*\{\*.*\*\}[ \t]*$"  # FastAPI's includes
    r"|^[ \t]*[-;]{1,2}8<[-]{2,}.*$"  # pymdownx snippets
    r"|^[ \t]*\.\. (?:include|literalinclude)::.*$"
    r"|^[ \t]*::: [\w.]+[ \t]*$"  # mkdocstrings
    rf"|^(?:[ \t]*(?:{_PICTURE}|\[{_PICTURE}\]{_TARGET}))+[ \t]*$"  # pictures alone, and badges
    r"|\{%-? *(?:include|import|from|extends|raw|endraw|image|end\w+|block|assign|set)\b[^%]*%\}"
    r"|(?:(?<![ \t])[ \t]+)?\{:[^{}\n]*\}[ \t]*$",  # attributes of kramdown
    re.MULTILINE,
)
_LINK_DEFINITION = re.compile(
    r"^ {0,3}\[(?!\^)[^\]\n]{1,200}\]:[ \t]*(?:<[^<>\n]*>|[^\s<]\S*)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.MULTILINE,
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAGS = re.compile(
    r"</?(?:a|abbr|article|aside|b|big|blockquote|br|button|caption|center|code|colgroup|col|dd|del|"
    r"details|div|dl|dt|em|figcaption|figure|font|footer|h[1-6]|header|hr|i|iframe|img|ins|kbd|li|"
    r"main|mark|nav|ol|p|picture|pre|s|samp|script|section|small|source|span|strike|strong|style|sub|"
    r"summary|sup|svg|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|video)(?:[ \t\n/][^<>]{0,500})?>",
    re.IGNORECASE,
)
_APART = re.compile(r"</?(?:br|dd|div|dt|h[1-6]|li|p|td|th|tr)\b", re.IGNORECASE)
"""Tags that keep the words around them apart."""
_WIDE_ROW = re.compile(r"^[ \t]*\|(?=.{120}).*\|[ \t]*$", re.MULTILINE)
_PADDING = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)|(?<=---)-+")
_CODE = re.compile(
    r"^(?P<fence>[ \t>]*+(?:`{3,}+|~{3,}+)).*\n(?:.*\n)*?(?P=fence)[ \t]*$"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^`]|(?!(?P=ticks)(?!`))`)*?(?P=ticks)(?!`)",
    re.MULTILINE,
)
_HEADING_TAIL = re.compile(r"(?<![ \t])[ \t]+\{#[^{}]*\}$")


def markdown_blocks(text: str) -> list[Block]:
    """List the headings and blocks of a Markdown text, as CommonMark with tables has them."""
    lines = line_offsets(text)
    tokens = _parser().parse(with_line_feeds_only(text))
    found = []
    for number, token in enumerate(tokens):
        if token.level or token.map is None or token.type.endswith("_close"):
            continue
        first, last = token.map
        start, end = without_blanks(text, lines[first], lines[min(last, len(lines) - 1)])
        if start >= end:
            continue
        if token.type == "heading_open":
            title = _HEADING_TAIL.sub("", tokens[number + 1].content)
            found.append(Block("heading", start, end, int(token.tag[1]), " ".join(title.split())))
        else:
            found.append(_block(token, text, start, end))
    return list(_with_gaps(text, found))


def readable_markdown(text: str) -> tuple[str, str]:
    """Return the title in the front matter, and the text with blanks for what is no text of it.

    Front matter, comments, directives that include other files, definitions of links, and HTML tags
    outside code go; every line keeps its number.
    """
    title = ""
    if match := _FRONT_MATTER.match(text):
        named = _TITLE.search(match[0])
        title = named[1].strip().strip("\"'") if named else ""
        text = _blank(match) + text[match.end() :]
    text = _outside_code(text, _COMMENT)
    text = _outside_code(text, _LINK_DEFINITION)
    text = _NOT_TEXT.sub(_blank, text)
    text = _outside_code(text, _TAGS, _blank_tag)
    return title, _outside_code(text, _WIDE_ROW, lambda row: _PADDING.sub(_narrow, row[0]))


def _block(token: "Token", text: str, start: int, end: int) -> Block:
    kind = _KINDS.get(token.type, "prose")
    lines = line_offsets(text[start:end])
    if kind == "table":
        return Block(kind, start, end, head=start + lines[min(_TABLE_HEAD, len(lines) - 1)])
    if token.type == "fence":
        if token.info.startswith("{") and not re.match(r"\{(?:eval-rst|code)", token.info):
            kind = "prose"  # MyST: a note, a warning.
        closing = start + lines[-2]
        closed = len(lines) > _TABLE_HEAD and text[closing:end].lstrip().startswith(token.markup)
        return Block(kind, start, end, head=start + lines[1], tail=closing if closed else 0)
    return Block(kind, start, end)


def _with_gaps(text: str, blocks: list[Block]) -> "list[Block]":
    """Add what the parser keeps to itself as prose."""
    found, at = [], 0
    for block in [*blocks, Block("prose", len(text), len(text))]:
        start, end = without_blanks(text, at, block.start)
        if text[start:end].strip():
            found.append(Block("prose", start, end))
        if block.end > block.start:
            found.append(block)
        at = block.end
    return found


def _outside_code(
    text: str, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str] | None = None
) -> str:
    """Replace what matches, except where it begins within code; without `by`, blank it."""
    code = [match.span() for match in _CODE.finditer(text)]

    def replaced(match: re.Match[str]) -> str:
        within = any(start <= match.start() < end for start, end in code)
        return match[0] if within else (by or _blank)(match)

    return pattern.sub(replaced, text)


def _blank_tag(tag: re.Match[str]) -> str:
    start, end = tag.span()
    around = tag.string[max(start - 1, 0) : start], tag.string[end : end + 1]
    return _blank(tag) or (" " if _APART.match(tag[0]) and all(map(str.strip, around)) else "")


def _narrow(padding: re.Match[str]) -> str:
    return " " if padding[0].isspace() else ""


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")
