"""reStructuredText: its blocks, and a text without what readers of the page do not see."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from crag.documents.blocks import Block, Kind, is_item, line_offsets, with_line_feeds_only
from crag.text.markup import REFERENCES, reference_as_words
from crag.text.wholes import CODE_DIRECTIVES, DOCTEST, without_blanks

if TYPE_CHECKING:
    from docutils import nodes

_TABLES = {"table", "list-table", "csv-table", "flat-table"}
_NOT_TEXT = {"toctree", "contents", "include", "literalinclude", "raw", "index", "image",
             "highlight", "currentmodule", "module", "py:module", "py:currentmodule", "meta",
             "default-role", "role", "program", "tabularcolumns", "sectnum",
             "autosummary", "automodule", "youtube", "activate-tab", "title", "testsetup",
             "testcleanup"}  # fmt: skip
_LOOKS = {"rst-class", "cssclass"}
"""Directives that say how what comes next looks, or what they hold."""
_DIRECTIVE = re.compile(r"(?P<indent>[ \t]*)\.\. (?:\|[^|\n]+\| )?(?P<name>[\w:.+-]+?)::(?:\s|$)")
_TARGET = re.compile(
    r"[ \t]*\.\. (?:_[^\n]*:|\[[^\]\n]*\]$|\|[^|\n]+\| )|[ \t]*__ "
    r"|:(?:orphan|nosearch|no-search|nocomments|tocdepth):"
)
"""Targets, definitions, and what a file says of itself."""
_FIELDS_OF_FILE = re.compile(r"\s*(?::[a-zA-Z][^:\n]*:.*\n(?:[ \t]+\S.*\n)*)+(?=[ \t]*\n\s*\S)")
"""What a file says of itself before its title, such as its author."""
_SUBSTITUTED = re.compile(
    r"^[ \t]*\.\. \|([^|\n]+)\|[ \t]+(?:replace::[ \t]+(\S.*)|image::.*)$", re.MULTILINE
)
_BADGES = re.compile(r"(?:[ \t]*\|(?! )[^|\n]+(?<! )\|_{0,2})+[ \t]*$")
_WIDE_MARK = re.compile(r"^([ \t]*\.\.) {2,}(?=_|\[|[\w:.+|-]+::)", re.MULTILINE)
"""Two dots with several spaces, which begin what they do with one."""
_NAMED_TARGET = re.compile(r"[ \t]*\.\. _([^:`\n]+):")
_TARGET_OF_ITEM = re.compile(
    r"^([ \t]*(?:[*+-]|#\.|\d{1,3}\.)[ \t]+)\.\. _[^\n]*:[ \t]*\n((?:[ \t]*\n)?)[ \t]+(?=\S)",
    re.MULTILINE,
)
"""An item that begins with a target, up to its text."""
_COMMENT = re.compile(
    r"[ \t]*\.\.(?:\s|$)(?!\s*(?:\|[^|\n]+\| )?[\w:.+-]+::|\s*(?:[_|]|\[[^\[\]\n]+\]))"
)
_INLINE = re.compile(
    r"(?P<literal>``.+?``)"
    r"|(?P<escape>\\(?=[ \n]) ?)"  # which joins words, or takes a break out
    r"|:(?P<role>[a-zA-Z][\w:.+-]{0,100}):`(?P<text>[^`]+)`"
    r"|(?<![`:\w])`(?P<label>[^`<]*[^`<\s])\s*<[^`<>]+>`__?"  # a link
    r"|(?<![`:\w])(?P<referred>`[^`<]*[^`<\s])\s*<[!~]?\w+(?:\.\w+)+>`(?![`_\w])"  # to a name
    r"|(?<![\w`|])\|(?P<substituted>[^|\s`](?:[^|\n`]{0,60}[^|\s`])?)\|(?![\w`|])"
    r"|(?<![\w`.-])(?P<name>[A-Za-z\d](?:[\w.-]{0,60}[A-Za-z\d])?)_(?![\w`])",  # to a target
    re.DOTALL,
)
_LOST = re.compile(r"\x00[ \t]*\x01")
"""Ends of lines that a role or a link had, each with the indentation of the line after it."""
_GAP = re.compile(r"(?<=\S)[ \t]+(?=\S)|\A[ \t]+(?=\S)")
_SERIES = {"pep": "PEP", "rfc": "RFC"}
"""Roles of docutils that show what they number."""
_LABELLED = re.compile(r"(?P<label>[^<]*\S)\s*<[^<>]*>\Z", re.DOTALL)
_OPTION = re.compile(r"[ \t]+:[\w-]+:")
_RULE = re.compile(r"[ \t]*(?:\+[-=+]+\+|=+(?:[ \t]+=+)*)[ \t]*$")
"""A line of a table that has no words."""
_UNDERLINE = re.compile(r"([!-/:-@[-`{-~])\1*[ \t]*$")


def rst_blocks(text: str) -> list[Block]:
    """List the headings and blocks of a text, as docutils has them.

    Directives and roles of Sphinx and others are kept as text; docutils' complaints are not shown.
    """
    lines, rows = line_offsets(text), text.split("\n")
    starts = _in_order([*_starts(_parsed(text), rows), *_directives(rows)], rows)
    found: list[Block] = []
    for number, one in enumerate(starts):
        until = starts[number + 1].line if number + 1 < len(starts) else len(lines) - 1
        start, end = without_blanks(text, lines[one.line], lines[until])
        if start >= end:
            continue
        if one.level:
            found.append(Block("heading", start, end, one.level, one.title))
        else:
            found.append(_block(text, start, end, one.node))
    return found


def readable_rst(text: str) -> str:
    """Return the text with blanks for comments, targets, toctrees and included files.

    Roles and links keep what readers see of them; every line keeps its number.
    """
    text = _WIDE_MARK.sub(r"\1 ", text)
    replacements = dict(_SUBSTITUTED.findall(text))
    if fields := _FIELDS_OF_FILE.match(text):
        text = "\n" * fields[0].count("\n") + text[fields.end() :]
    lines = _TARGET_OF_ITEM.sub(r"\n\2\1", text).split("\n")
    literal = set(_literal(lines))
    targets = {name[1].casefold() for name in map(_NAMED_TARGET.match, lines) if name}
    for first, last in list(_unseen(lines, literal)):
        lines[first:last] = [""] * (last - first)
    text = "\n".join(lines)
    starts = line_offsets(text)

    def shown(match: re.Match[str]) -> str:
        if match["literal"] or bisect_right(starts, match.start()) - 1 in literal:
            return match[0]
        if match["escape"]:
            return ""
        if match["substituted"]:
            shown = replacements.get(match["substituted"], match[0])
            return shown or " " * len(match[0])  # A picture; what stands in a table stays there.
        if name := match["name"]:
            return name if name.casefold() in targets else match[0]
        if referred := match["referred"]:
            label = f"{referred}`"
        else:
            label = match["label"] or _shown_label(match["text"], match["role"])
        ends = re.findall(r"\n([ \t]*)", match[0])
        return label + "".join(f"\x00{indent}\x01" for indent in ends[label.count("\n") :])

    return _with_line_ends(_INLINE.sub(shown, text.replace("\x00", "\ufffd")))


def _with_line_ends(text: str) -> str:
    """End lines where roles and links had ended them, between words that are near.

    An end right after a label could be an empty line, which would end the paragraph.
    """
    return "\n".join(
        _with_ends_between_words(line) if "\x00" in line else line for line in text.split("\n")
    )


def _with_ends_between_words(line: str) -> str:
    ends = re.findall(r"\x00(.*?)\x01", line)
    first, words = line.index("\x00"), _LOST.sub("", line)
    depth = len(words) - len(words.lstrip())
    gaps = [gap.span() for gap in _GAP.finditer(words, depth)]
    chosen = sorted(gaps, key=lambda gap: (gap[0] < first, abs(gap[0] - first)))[: len(ends)]
    for (start, end), indent in zip(sorted(chosen, reverse=True), reversed(ends), strict=False):
        words = f"{words[:start]}\n{indent}{words[end:]}"
    return words + "\n" * (len(ends) - len(chosen))


def _parsed(text: str) -> "nodes.document":
    """Parse without transforms, so that every node stays where its lines are."""
    from docutils.frontend import get_default_settings
    from docutils.parsers.rst import Parser
    from docutils.utils import Reporter, new_document

    parser = Parser()
    settings = get_default_settings(parser)
    settings.report_level = Reporter.SEVERE_LEVEL + 1
    settings.halt_level = Reporter.SEVERE_LEVEL + 1
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.line_length_limit = len(text) + 1
    document = new_document("", settings)
    parser.parse(with_line_feeds_only(text), document)
    return document


class _Start(NamedTuple):
    """Where a heading or a block starts."""

    line: int
    """From 0."""
    level: int = 0
    """Of a heading."""
    title: str = ""
    node: str = ""
    """Of a block: what docutils calls it."""


def _in_order(starts: Iterable[_Start], lines: list[str]) -> list[_Start]:
    """Sort where headings and blocks start, each on a line of its own, from the first line on."""
    found = {0: _Start(0)}  # Of some directives docutils has no node, or none with a line.
    for start in starts:
        earlier = found.get(start.line, _Start(start.line))
        if start.level or not (earlier.level or earlier.node):
            found[start.line] = start
        if start.level:
            below = _below_heading(start.line, lines)
            found.setdefault(below, _Start(below))
    return [found[line] for line in sorted(found)]


def _starts(node: "nodes.Element", lines: list[str], level: int = 0) -> Iterator[_Start]:
    """Yield where headings and blocks start; each term with its definition is a block."""
    from docutils import nodes

    for child in node.children:
        if isinstance(child, nodes.section):
            title = " ".join(child.children[0].astext().split())
            yield _Start(_heading_line(child.line or 1, lines), level + 1, title)
            yield from _starts(child, lines, level + 1)
        elif isinstance(child, nodes.definition_list):
            for item in child.children:
                if isinstance(item, nodes.definition_list_item) and item.line is not None:
                    yield _Start(item.line - 1, node=item.tagname)
        elif isinstance(child, nodes.Element) and not isinstance(child, nodes.title):
            line = _first_line(child)
            if line is not None:
                yield _Start(_block_line(line - 1, lines), node=child.tagname)


def _directives(lines: list[str]) -> Iterator[_Start]:
    """Yield where code and tables start at the margin: docutils lacks some of Sphinx."""
    literal = set(_literal(lines))
    for at, line in enumerate(lines):
        directive = None if at in literal else _DIRECTIVE.match(line)
        names = CODE_DIRECTIVES | _TABLES
        if directive and not directive["indent"] and directive["name"] in names:
            yield _Start(at)


def _first_line(node: "nodes.Element") -> int | None:
    from docutils import nodes

    found = [one.line for one in node.findall(nodes.Element) if one.line is not None]
    return min(found, default=None)


def _heading_line(line: int, lines: list[str]) -> int:
    """Return the first line of a heading, from 0; docutils names that of its underline."""
    at = min(line, len(lines)) - 1
    while at > 0 and not _UNDERLINE.match(lines[at]):
        at -= 1
    title = at - 1
    above = title > 0 and lines[title - 1].strip() and _UNDERLINE.match(lines[title - 1])
    return title - 1 if above else max(title, 0)


def _below_heading(first: int, lines: list[str]) -> int:
    """Return the line below the rule that ends a heading, which may begin with one too."""
    at = first + 1
    while at < len(lines) and not _UNDERLINE.match(lines[at]):
        at += 1
    return min(at + 1, len(lines))


def _block_line(at: int, lines: list[str]) -> int:
    """Return the first line of the paragraph that holds a line, or of the directive around it."""
    at = _paragraph_line(min(max(at, 0), len(lines) - 1), lines)
    above = at
    while above > 0 and (not lines[above].strip() or lines[above].startswith((" ", "\t"))):
        above -= 1
    return above if above < at and _DIRECTIVE.match(lines[above]) else at


def _paragraph_line(at: int, lines: list[str]) -> int:
    while at > 0 and not lines[at].strip():
        at -= 1
    while at > 0 and lines[at - 1].strip() and not _UNDERLINE.match(lines[at - 1]):
        at -= 1
    return at


def _block(text: str, start: int, end: int, node: str) -> Block:
    lines = text[start:end].split("\n")
    directive = _DIRECTIVE.match(lines[0])
    if node == "definition_list_item":
        return Block("list", start, end, head=min(start + len(lines[0]) + 1, end))
    if directive is None and node == "block_quote":
        return Block("list", start, end)
    if directive is None:
        kind = _kind(lines)
        head = _length_of_head(lines) if kind == "table" else 0
        return Block(kind, start, end, head=min(start + head, end) if head else 0)
    kind = "prose"
    if directive["name"] in CODE_DIRECTIVES:
        kind = "code"
    elif directive["name"] in _TABLES:
        kind = "table"
    options = 1
    while options < len(lines) and _OPTION.match(lines[options]):
        options += 1
    if kind == "table" and any(":header-rows:" in line for line in lines[1:options]):
        options = _end_of_row(lines, options)
    head = start + sum(len(line) + 1 for line in lines[:options]) if kind != "prose" else 0
    return Block(kind, start, end, head=min(head, end))


def _length_of_head(lines: list[str]) -> int:
    """Measure a table down to the rule below its head; one without a head has none."""
    rules = [at for at, line in enumerate(lines) if _RULE.match(line)]
    has_head = len(rules) > 2 and ("+=" in lines[rules[1]] or lines[0].lstrip().startswith("="))  # noqa: PLR2004 - above, below, at the end
    return sum(len(line) + 1 for line in lines[: rules[1] + 1]) if has_head else 0


def _end_of_row(lines: list[str], at: int) -> int:
    """Return the line after the first row of a list-table, which is its head."""
    rows = [number for number in range(at, len(lines)) if lines[number].lstrip().startswith("* -")]
    return rows[1] if len(rows) > 1 else at


def _kind(lines: list[str]) -> Kind:
    first = lines[0].strip()
    if first.startswith(("+-", "+=")) or (first.startswith("==") and " " in first):
        return "table"
    if is_item(lines[0]) or re.match(r":[^:\n]+:(\s|$)", lines[0]):
        return "list"
    if first.startswith(">>>") or lines[0][:1] in {" ", "\t"}:
        return "code"
    return "prose"


def _literal(lines: list[str]) -> Iterator[int]:
    """Yield the lines of code, which may show markup that is not to be read as such."""
    at = 0
    while at < len(lines):
        directive = _DIRECTIVE.match(lines[at])
        announces = lines[at].rstrip().endswith("::") and directive is None
        last = at + 1
        if announces or (directive is not None and directive["name"] in CODE_DIRECTIVES):
            last = _end_of_indented(lines, at)
            yield from range(at + 1, last)
        elif DOCTEST.match(lines[at]):
            last = next((n for n in range(at, len(lines)) if not lines[n].strip()), len(lines))
            yield from range(at, last)
        at = last


def _unseen(lines: list[str], literal: set[int]) -> Iterator[tuple[int, int]]:
    """Yield the first line, and the one after the last, of what readers do not see."""
    for at, line in enumerate(lines):
        directive = _DIRECTIVE.match(line)
        unseen = directive is not None and directive["name"] in _NOT_TEXT
        if at not in literal and (unseen or _TARGET.match(line) or _COMMENT.match(line)):
            yield at, _end_of_indented(lines, at)
        elif at in literal:
            continue
        elif (directive is not None and directive["name"] in _LOOKS) or _is_of_badges(lines, at):
            yield at, at + 1


def _is_of_badges(lines: list[str], at: int) -> bool:
    """Return whether a line holds badges alone, and no title, term or part of a sentence."""
    around = lines[max(at - 1, 0) : at + 2]
    return _BADGES.match(lines[at]) is not None and all(
        not line.strip() or _BADGES.match(line) for line in around
    )


def _end_of_indented(lines: list[str], at: int) -> int:
    """Return the line after those that are indented deeper than line `at`."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    last = at + 1
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if line.strip():
            if len(line) - len(line.lstrip()) <= indent:
                break
            last = number + 1
    return last


def _shown_label(text: str, role: str) -> str:
    if labelled := _LABELLED.match(text):
        return labelled["label"].lstrip("~!")
    if role.removeprefix("std:") in REFERENCES:
        return reference_as_words(text)
    series = _SERIES.get(role.lower(), "")
    return f"{series} {text.partition('#')[0]}" if series else text.lstrip("~!")
