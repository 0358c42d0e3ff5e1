"""Markdown: its blocks, and a text without what readers of the page do not see."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING

from crag.documents.blocks import Block, Kind, line_offsets, with_line_feeds_only
from crag.text.html import tables_in
from crag.text.markup import REFERENCES, reference_as_words
from crag.text.wholes import CODE_DIRECTIVES, without_blanks

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
_UNSEEN = (
    "toctree|contents|currentmodule|include|literalinclude|image|index|tableofcontents|testsetup"
    "|testcleanup"
)
"""Directives of MyST that readers of the page do not see."""
_NOT_TEXT = re.compile(
    rf"^[ \t]*(?P<fence>`{{3,}}|~{{3,}})\{{(?:{_UNSEEN})\}}.*\n(?:(?![ \t]*(?P=fence)\{{).*\n)*?"
    r"[ \t]*(?P=fence)[ \t]*$"
    r"|^\([\w .:-]+\)=[ \t]*$"  # MyST: targets
    r"|(?:\A|(?<=\n\n))%[ \t].*(?:\n%.*)*"  # and comments
    r"|^[ \t]*\{\*.*\*\}[ \t]*$"  # FastAPI's includes
    r"|^[ \t]*\.\. (?:include|literalinclude)::.*$"
    r"|^[ \t]*::: [\w.]+[ \t]*$(?:\n(?:[ \t]{4}.*|(?=\n[ \t]{4})))*"  # mkdocstrings
    r"|^[ \t]*\[{1,2}_?toc_?\]{1,2}[ \t]*$|^[ \t]*\[TOC\][ \t]*$"
    rf"|^(?:[ \t]*(?:{_PICTURE}|\[{_PICTURE}\]{_TARGET}))+[ \t]*$",  # pictures alone, and badges
    re.MULTILINE,
)
"""What is no text but within code, which may show just that."""
_INCLUDED = re.compile(
    r"^[ \t]*[-;]{1,2}8<[-]{2,}.*$|\{%-? *(?:raw|endraw)\b[^%]*%\}", re.MULTILINE
)
"""Snippets of pymdownx and marks of Jinja, which are read within code too."""
_TEXT_IN_CODE = re.compile(
    rf"\{{(?:{'|'.join(REFERENCES)})\}}`(?P<target>[^`<>\n]+)`"
    r"|\{(?P<series>pep|rfc)\}`(?P<number>\d+)[^`\n]*`"  # MyST
    r"|\{[a-z][\w:-]*\}`(?P<label>[^`<]*[^`<\s])\s*<[^`<>]+>`"
    r"|\{[a-z][\w:-]*\}(?P<role>`)(?:[~!](?=\w))?"
    r"|\{%-? *(?:include|import|from|extends|image|end\w+|block|assign|set)\b[^%]*%\}"
    r"|\{\{[<%][^{}\n]*[>%]\}\}"  # shortcodes of Hugo
    r"|(?:(?<![ \t])[ \t]+)?\{:[^{}\n]*\}[ \t]*$",  # attributes of kramdown
    re.MULTILINE,
)
"""Roles and the like outside of code, which may show just that, as `{prefix}:{name}` does."""
_LINK_DEFINITION = re.compile(
    r"^ {0,3}\[(?!\^)(?P<label>[^\]\n]{1,200})\]:[ \t]*(?:<[^<>\n]*>|\{%[^%\n]*%\}\S*|[^\s<]\S*)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.MULTILINE,
)
_LABEL_ALONE = re.compile(r"(?<![\]\\!\w])\[(?P<label>[^\[\]\n]{1,200})\](?![\[(:])")
_COMMENT = re.compile(
    r"<!--(?:\s?\[\[\[.{0,3000}?\]\]\])?.*?(?:-->|\Z)"
    r"|\{%-? ?comment\b[^%\n]*%\}(?:(?!\{%-? ?comment\b).){0,3000}?"
    r"\{%-? ?endcomment\b[^%\n]*%\}",
    re.DOTALL,
)
"""Of HTML, with the program in one that cog runs, or of Jinja's kin."""
_CONTENTS = re.compile(
    r"(?:^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[[^\n]*\]\(#[^()\s]*\)[ \t]*(?:\n|\Z)){3,}",
    re.MULTILINE,
)
"""A list of links into the page, and of nothing else."""
_PROGRAM = re.compile(
    r"^[ \t]*<(?P<unseen>script|style|svg)\b[^<>]*>(?:(?!<(?:script|style|svg)\b)[\s\S])*?"
    r"</(?P=unseen)>"
    r"|^import\b[\w\s{},*$]{0,500}[\"'][^\"'\n]{1,500}[\"'];?[ \t]*$"
    r"|^export (?:const|let|var|default|async|function)\b.*(?:\n.*\S.*)*"
    r"|\{/\*(?:(?!\{/\*|\*/\})[\s\S])*\*/\}",
    re.MULTILINE,
)
"""What MDX and Vue run, and their comments."""
_OF_COMPONENT = r"(?:[ \t\n](?:[^<>\"'{}]|\"[^\"\n]*\"|'[^'\n]*'|\{[^{}\n]*\}){0,500})?"
_COMPONENT = re.compile(rf"</(?P<closed>[A-Z]\w*)>|<(?P<empty>[A-Z]\w*){_OF_COMPONENT}/>")
_LABEL = re.compile(r"\b(?:label|title|summary)=\{?[\"']([^\"'\n]{1,200})[\"']")
_TABLE = re.compile(
    r"^[ \t]*<table\b(?:(?!<table\b)[\s\S])*?</table>[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_SUMMARY = re.compile(
    r"<summary\b[^<>]*>\s*(?:<(?:b|strong|h[1-6])>)?(?P<words>[^<>\n]{1,200}?)"
    r"(?:</(?:b|strong|h[1-6])>)?\s*</summary>",
    re.IGNORECASE,
)
_HTML_BLOCK = re.compile(
    r"^ {0,3}</?(?:center|dd|details|div|dl|dt|h[1-6]|li|ol|p|section|summary|table|tbody|td|tfoot"
    r"|th|thead|tr|ul)\b(?:.*\S.*(?:\n|\Z))+",
    re.MULTILINE | re.IGNORECASE,
)
_LINES_APART = re.compile(r"<(?:dd|dt|pre|td|th)\b|list-style(?:-type)?: ?none", re.IGNORECASE)
_ITEM = re.compile(r"^[ \t]*<li\b[^<>\n]*>[ \t]*(?=\S)", re.IGNORECASE | re.MULTILINE)
_CONTAINER = re.compile(
    r"(?P<margin>[ \t]*)(?P<fence>:{3,}|/{3,})[ \t]*"
    r"(?:(?P<name>[a-zA-Z][\w-]*)(?:[ \t]*\{[^{}\n]*\})?[ \t]*"
    r"(?:\[(?P<label>[^\]\n]*)\]|\|(?P<of_block>[^\n]*)|(?P<title>[^\[\]{}\n]*)))?"
    r"(?:[ \t]*\{[^{}\n]*\})?[ \t]*"
)
"""What opens a container of Docusaurus or VitePress, or a block of pymdownx, or closes it."""
_BLOCK_OPTION = re.compile(r"[ \t]{4,}[\w-]+:[ \t].*")
_NOTES = {"note", "tip", "info", "warning", "danger", "caution", "important", "success", "hint",
          "error", "question", "example"}  # fmt: skip
_CODE_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_DEEPEST, _MOST_COMPONENTS = 8, 20
"""Containers within each other, and names of components, that are looked at."""
_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)
_TAGS = re.compile(
    r"</?(?:a|abbr|article|aside|b|big|blockquote|br|button|caption|center|cite|code|colgroup|col|dd|"
    r"del|details|div|dl|dt|em|figcaption|figure|font|footer|h[1-6]|header|hr|i|iframe|img|input|ins|kbd|"
    r"li|main|mark|nav|ol|p|picture|pre|s|samp|script|section|small|source|span|strike|strong|style|sub|"
    r"summary|sup|svg|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|video)(?:[ \t\n/][^<>]{0,500})?>",
    re.IGNORECASE,
)
_LINK_OF_HTML = re.compile(
    r"<a\s[^<>\n]{0,500}?href=\"(?P<address>https?://[^\"\s()]{1,500})\"[^<>\n]{0,500}>"
    r"(?P<label>[^<>\[\]\n]{1,200})</a>(?=[ \t]*(?:\||$))",
    re.IGNORECASE | re.MULTILINE,
)
"""A link that stands alone, or in a row with others: without its address it says nothing."""
_APART = re.compile(r"</?(?:br|dd|div|dt|h[1-6]|li|p|td|th|tr)\b", re.IGNORECASE)
"""Tags that keep the words around them apart."""
_BARE_TABLE = re.compile(
    r"^(?![ \t]*[|>#])[^\n|]*\|.*\n[ \t]*:?-+:?[ \t]*\|[-:| \t]*(?:\n|\Z)"
    r"(?:(?![ \t]*\|)[^\n|]*\|.*(?:\n|\Z))*",
    re.MULTILINE,
)
_TABLE_OF_ROWS = re.compile(
    r"^[ \t]*\|.*\n[ \t]*\|[ \t]*:?-[-:| \t]*$(?:\n[ \t]*\|.*)*", re.MULTILINE
)
_UNCLOSED_ROW = re.compile(r"^[ \t]*\|.*[^|\s](?=[ \t]*$)", re.MULTILINE)
_ROW_WITHOUT_BARS = re.compile(r"^(?P<margin>[ \t]*)(?P<cells>\S.*)$", re.MULTILINE)
_WIDE_ROW = re.compile(r"^[ \t]*\|(?=.{120}).*\|[ \t]*$", re.MULTILINE)
_PADDING = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)|(?<=---)-+")
_CODE_OF_MYST = CODE_DIRECTIVES | {"eval-rst", "code-cell"}
_FENCE = r"^(?P<fence>[ \t>]*+(?:`{3,}+|~{3,}+))"
_CLOSING_FENCE = re.compile(rf"{_FENCE}[ \t]*$", re.MULTILINE)
_CODE_WITHIN = re.compile(r"(?<!`)(?P<ticks>`+)(?!`)(?:[^`]|(?!(?P=ticks)(?!`))`)*?(?P=ticks)(?!`)")
_CODE = re.compile(rf"{_FENCE}|{_CODE_WITHIN.pattern}", re.MULTILINE)
_NOTE = re.compile(rf"\{{(?!(?:{_UNSEEN}|{'|'.join(sorted(_CODE_OF_MYST))})\}})[a-z][\w:-]*\}}")
"""What opens text of MyST within a fence, such as a note, which is no code."""
_HEADING_TAIL = re.compile(r"(?<![ \t])[ \t]+\{#[^{}]*\}$")


def markdown_blocks(text: str) -> list[Block]:
    """List the headings and blocks of a Markdown text, as CommonMark with tables has them."""
    lines = line_offsets(text)
    tokens = _parser().parse(with_line_feeds_only(text))
    found = []
    level = 0
    for number, token in enumerate(tokens):
        if token.type.startswith("blockquote_") and not token.level:
            level = int(_quotes_code(tokens, number))  # Then what it holds are the blocks.
        if token.level != level or token.map is None or token.type.endswith("_close"):
            continue
        first, last = token.map
        start, end = without_blanks(text, lines[first], lines[min(last, len(lines) - 1)])
        if start >= end:
            continue
        if token.type == "heading_open" and not level:
            title = _HEADING_TAIL.sub("", tokens[number + 1].content)
            found.append(Block("heading", start, end, int(token.tag[1]), " ".join(title.split())))
        else:
            found.append(_block(token, text, start, end))
    return list(_with_gaps(text, found))


def readable_markdown(text: str) -> tuple[str, str]:
    """Return the title in the front matter, and the text with blanks for what is no text of it.

    Front matter, comments, tables of contents, directives that include other files, definitions of
    links, what MDX runs, and tags of HTML and components outside code go, and HTML tables become
    those of Markdown; every line outside of these keeps its number.
    """
    title = ""
    if match := _FRONT_MATTER.match(text):
        named = _TITLE.search(match[0])
        title = _TAGS.sub("", named[1]).strip().strip("\"'") if named else ""
        text = _blank(match) + text[match.end() :]
    text = _outside_code(text, _COMMENT)
    text = _with_labels_of_links(text)
    text = _outside_code(text, _PROGRAM)
    text = _outside_code(text, _CONTENTS)
    text = _with_notes(text)
    text = _INCLUDED.sub(_blank, _outside_code(text, _NOT_TEXT))
    text = _outside_code(text, _TEXT_IN_CODE, _shown_role)
    text = _outside_code(text, _BARE_TABLE, _between_bars)
    text = _outside_code(text, _TABLE_OF_ROWS, _with_closed_rows)
    text = _without_components(text)
    text = _outside_code(text, _TABLE, _as_markdown)
    text = _outside_code(text, _SUMMARY, lambda summary: _in_bold(summary, summary["words"]))
    text = _outside_code(text, _HTML_BLOCK, _at_margin)
    text = _outside_code(text, _LINK_OF_HTML, lambda link: f"[{link['label']}]({link['address']})")
    text = _outside_code(text, _TAGS, _blank_tag)
    return title, _outside_code(text, _WIDE_ROW, lambda row: _PADDING.sub(_narrow, row[0]))


def _with_labels_of_links(text: str) -> str:
    """Blank the definitions of links, and show the labels that are links by them alone."""
    defined: set[str] = set()

    def blank(definition: re.Match[str]) -> str:
        defined.add(definition["label"].casefold())
        return _blank(definition)

    def shown(link: re.Match[str]) -> str:
        return link["label"] if link["label"].casefold() in defined else link[0]

    return _outside_code(_outside_code(text, _LINK_DEFINITION, blank), _LABEL_ALONE, shown)


def _quotes_code(tokens: "Sequence[Token]", opening: int) -> bool:
    """Return whether the quotation that begins there, if one does, holds a block of code."""
    for token in tokens[opening + 1 :] if tokens[opening].nesting > 0 else ():
        if token.level == 0:
            return False
        if token.type == "fence" and token.level == 1:
            return True
    return False


def _block(token: "Token", text: str, start: int, end: int) -> Block:
    kind = _KINDS.get(token.type, "prose")
    lines = line_offsets(text[start:end])
    if kind == "table":
        return Block(kind, start, end, head=start + lines[min(_TABLE_HEAD, len(lines) - 1)])
    fence = token.markup if token.type == "fence" else ""
    if token.type == "code_block":
        fence = _fence_around(text[start:end].split("\n"))
    if fence:
        directive = re.match(r"\{([\w-]+)", token.info)
        if directive and directive[1] not in _CODE_OF_MYST:
            kind = "prose"  # MyST: a note, a warning.
        closing = start + lines[-2]
        closed = text[closing:end].lstrip(" \t>").startswith(fence)
        closed = closed and len(lines) > _TABLE_HEAD
        return Block(kind, start, end, head=start + lines[1], tail=closing if closed else 0)
    return Block(kind, start, end)


def _fence_around(lines: Sequence[str]) -> str:
    """Return the fence of indented code that is no more than what it holds, as in a tab."""
    fences = [mark[1] if (mark := _CODE_FENCE.match(line)) else "" for line in lines]
    is_one = fences[0] and lines[-1].strip() == fences[0] and not any(fences[1:-1])
    return fences[0] if is_one else ""


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
    code = list(_code_in(text))
    parts: list[str] = []
    at = begin = 0
    while match := pattern.search(text, at):
        within = bisect_left(code, (match.start(),)) - 1
        if within >= 0 and match.start() < code[within][1]:
            at = code[within][1]  # What begins in code does not end outside of it.
            continue
        parts += [text[begin : match.start()], (by or _blank)(match)]
        begin = match.end()
        at = begin + (match.end() == match.start())
    return "".join([*parts, text[begin:]])


def _code_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where code begins and ends; a fence that no other closes may be code within a line.

    What a note of MyST holds is text, though fences stand around it.
    """
    closings: dict[str, list[tuple[int, int]]] = {}
    for closing in _CLOSING_FENCE.finditer(text):
        closings.setdefault(closing["fence"], []).append(closing.span())
    at, ends_of_notes = 0, set[int]()
    while code := _CODE.search(text, at):
        start, at = code.span()
        if fence := code["fence"]:
            closing_it = closings.get(fence, [])
            nth = bisect_left(closing_it, (at,))
            if start in ends_of_notes:
                continue
            if nth < len(closing_it) and _NOTE.match(text, at):
                ends_of_notes.add(closing_it[nth][0])
                continue
            if nth < len(closing_it):
                _, at = closing_it[nth]
            elif within := _CODE_WITHIN.match(text, at - len(fence.lstrip(" \t>"))):
                start, at = within.span()
            else:
                continue
        yield start, at


def _without_components(text: str) -> str:
    """Take out the tags of components, such as tabs, and show what labels them.

    A name counts as a component's if a tag ends it, unlike `List<String>` and `<NAME>`.
    """
    found = _COMPONENT.finditer(text)
    names = {name for one in found if not (name := one["closed"] or one["empty"]).isupper()}
    if not names:
        return text
    for name in sorted(names)[:_MOST_COMPONENTS]:
        held = re.compile(
            rf"(?P<tag><{name}\b{_OF_COMPONENT}>)[ \t]*\n"
            rf"(?P<body>(?:(?!</?{name}\b)[\s\S])*?)[ \t]*(?=</{name}>)"
        )
        text = _outside_code(text, held, lambda one: f"{one['tag']}\n{dedent(one['body'])}")
    named = "|".join(sorted(names))
    tag = rf"(?:^[ \t]+)?(?:</(?:{named})>|<(?:{named})\b{_OF_COMPONENT}/?>)"
    return _outside_code(text, re.compile(tag, re.MULTILINE), _label_of)


def _with_notes(text: str) -> str:
    """Write containers between colons as MkDocs does notes, others as their titles in bold."""
    lines = text.split("\n")
    for first, last, opening in _containers(lines):
        title = opening["label"] or opening["of_block"] or opening["title"] or ""
        title = "" if opening["name"] == "html" else title.strip().replace('"', "'")
        at = first + 1
        while opening["fence"][0] == "/" and _BLOCK_OPTION.fullmatch(lines[at]):
            lines[at] = ""
            at += 1
        if (name := opening["name"].lower()) in _NOTES:
            titled = f' "{title}"' if title else ""
            lines[first] = f"{opening['margin']}!!! {name}{titled}"
            lines[first + 1 : last] = [
                f"    {line}" if line.strip() else line for line in lines[first + 1 : last]
            ]
        else:
            lines[first] = f"**{title}**" if title else ""
        lines[last] = ""
    return "\n".join(lines)


def _containers(lines: Sequence[str]) -> list[tuple[int, int, re.Match[str]]]:
    """Return the first and last line of each container outside code, inner ones first."""
    found: list[tuple[int, int, re.Match[str]]] = []
    openings: list[tuple[int, re.Match[str]]] = []
    code = ""
    for at, line in enumerate(lines):
        if mark := _CODE_FENCE.match(line):
            code = "" if code and mark[1].startswith(code) else code or mark[1]
        fence = None if code else _CONTAINER.fullmatch(line)
        if fence is None:
            continue
        if fence["name"]:
            openings.append((at, fence))
        elif any(opening["fence"] == fence["fence"] for _, opening in openings):
            first, opening = openings.pop()
            while opening["fence"] != fence["fence"]:  # One that nothing closes.
                first, opening = openings.pop()
            if len(openings) < _DEEPEST:
                found.append((first, at, opening))
    return found


def _label_of(tag: re.Match[str]) -> str:
    label = _LABEL.search(tag[0])
    return _in_bold(tag, label[1]) if label else _blank(tag)


def _in_bold(match: re.Match[str], words: str) -> str:
    """Write words as a line of their own, in bold."""
    return f"**{words.strip()}**{_blank(match)}"


def _as_markdown(table: re.Match[str]) -> str:
    """Write an HTML table with a head as one of Markdown, if its rows have room on its lines."""
    rows, lines = tables_in(table[0]), table[0].count("\n")
    has_room = rows and rows.count("\n") <= lines
    return rows + "\n" * (lines - rows.count("\n")) if has_room else table[0]


def _at_margin(block: re.Match[str]) -> str:
    """Move lines of HTML to the margin, as they would be code; items and cells stay apart."""
    if _LINES_APART.search(block[0]):
        return block[0]
    return _INDENTATION.sub("", _ITEM.sub("- ", block[0]))


def _shown_role(found: re.Match[str]) -> str:
    """Return what readers see of a role; its lines stay, and what it has as code is code."""
    if found["target"]:
        return reference_as_words(found["target"])
    if found["series"]:
        return f"{found['series'].upper()} {found['number']}"
    if not (label := found["label"]):
        return found["role"] or _blank(found)
    if label.count("\n") == found[0].count("\n"):
        return label
    words, _, last = label.rpartition(" ")
    margin = found[0].rpartition("\n")[2]
    return f"{words}\n{margin[: len(margin) - len(margin.lstrip())]}{last}"


def _between_bars(table: re.Match[str]) -> str:
    """Write the rows of a table with bars around them, as all of a table has that is cut."""
    return _ROW_WITHOUT_BARS.sub(
        lambda row: f"{row['margin']}| {row['cells'].removesuffix('|').rstrip()} |", table[0]
    )


def _with_closed_rows(table: re.Match[str]) -> str:
    """End each row of a table with a bar, which Markdown does not ask for."""
    return _UNCLOSED_ROW.sub(r"\g<0> |", table[0])


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
