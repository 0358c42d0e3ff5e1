"""An answer as clients read it: CommonMark, with or without the tables of GitHub.

markdown-it tells the lines of a block, but no place within them. Here every piece of code, link,
picture and tag of a block's text also has its place in the source, so that it can be changed there
and everything else left as it was written.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

DEEPEST = 20
"""Blocks within blocks, and brackets within brackets, that the parser enters; it drops the rest."""
LONGEST = 30_000
"""Characters of an answer that is parsed in less than a second."""
_MAY_BE_CODE = re.compile(r"[`~\t]|    ")
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|$)")


class Text(NamedTuple):
    """The text of a paragraph, heading or cell, without what marks it as such."""

    content: str
    tokens: "list[Token]"
    """What it consists of; code, links, pictures and tags have a `Span` in ``meta["span"]``."""
    offsets: list[int]
    """Where in `content` a part begins that stands in the source as it is, ascending."""
    places: list[int]
    """Where in the source each of these parts begins."""

    def place(self, offset: int) -> int:
        """Return where in the source a character of `content` stands."""
        part = max(bisect_right(self.offsets, offset) - 1, 0)
        return self.places[part] + offset - self.offsets[part]

    def places_of(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the source a part of `content` begins and ends."""
        return self.place(start), self.place(end - 1) + 1


class MarkdownSpan(NamedTuple):
    """Where in the content of a `Text` something begins and ends."""

    start: int
    end: int
    label_end: int
    """Where the label of a link or picture ends; otherwise the same as `end`."""


class MarkdownBlock(NamedTuple):
    """A block that has no other blocks within it, with its place in the source."""

    token: "Token"
    start: int
    end: int
    text: Text | None
    """None for code, HTML and definitions, and where its place in the source is unknown."""


class Parsed(NamedTuple):
    """A source and its blocks."""

    blocks: list[MarkdownBlock]
    is_whole: bool
    """Whether the parser entered all blocks: it leaves out what is nested too deep."""


def parsed(source: str, *, tables: bool) -> Parsed:
    """Parse an answer, by CommonMark alone or with tables and strikethrough as well."""
    tokens = _parser(tables=tables).parse(source)
    lines = [line.span() for line in _LINE.finditer(source)]
    blocks: list[MarkdownBlock] = []
    cursor = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.nesting or token.map is None:
            continue
        first, after = token.map
        start, end = lines[first][0], lines[min(after, len(lines)) - 1][1]
        cursor = max(cursor, start)
        text = None
        if token.type == "inline":
            is_cell = before is not None and before.type in {"th_open", "td_open"}
            text = _placed(token, source, lines, cursor if is_cell else None)
            if text is not None and text.content:
                cursor = text.place(len(text.content) - 1) + 1
        blocks.append(MarkdownBlock(token, start, end, text))
    is_whole = all(token.level < DEEPEST - 2 for token in tokens)
    return Parsed(blocks, is_whole)


def prose_and_code(source: str) -> list[str]:
    """Split an answer into its pieces: prose, code, prose and so on, from prose to prose.

    An answer that is too long to be parsed is all prose.
    """
    if len(source) > LONGEST or not _MAY_BE_CODE.search(source):
        return [source]
    pieces, end = [], 0
    for start, after in sorted(_code(source)):
        if start >= end:
            pieces += [source[end:start], source[start:after]]
            end = after
    return [*pieces, source[end:]]


def _code(source: str) -> Iterator[tuple[int, int]]:
    for block in parsed(source, tables=True).blocks:
        if block.token.type in {"fence", "code_block"}:
            yield block.start, block.end
        for token in block.text.tokens if block.text else ():
            if token.type == "code_inline" and block.text:
                span: MarkdownSpan = token.meta["span"]
                yield block.text.places_of(span.start, span.end)


def _placed(
    token: "Token", source: str, lines: list[tuple[int, int]], cursor: int | None
) -> Text | None:
    r"""Find the lines of a text in the source; `cursor` is where a cell begins, None if it is none.

    Markers of lists and quotations stand before a line, and none of them after it; in a cell, a
    ``\|`` of the source is read as ``|``.
    """
    offsets, places, offset = [], [], 0
    first = token.map[0] if token.map else 0
    for number, line in enumerate(token.content.split("\n"), start=first):
        core = line.strip()
        start, end = lines[min(number, len(lines) - 1)]
        lead = offset + line.find(core)
        offset += len(line) + 1
        if cursor is None:
            place = source.rfind(core, start, end)
            offsets.append(lead)
            places.append(place)
        else:
            place = source.find(core.replace("|", "\\|"), cursor, end)
            for nth, at in enumerate([0, *(bar.start() for bar in re.finditer(r"\|", core))]):
                offsets.append(lead + at)
                places.append(place + at + nth)
        if place < 0:
            return None
    return Text(token.content, token.children or [], offsets, places)


@cache
def _parser(*, tables: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt, rules_inline

    class Parser(MarkdownIt):
        """A parser that accepts every address, since clients differ in which ones they refuse."""

        def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the parser's name
            return True

    parser = Parser("commonmark", {"inline_definitions": True, "maxNesting": DEEPEST})
    parser.core.ruler.disable("text_join")  # Clients look for names in the text without escapes.
    if tables:
        parser.enable(["table", "strikethrough"])
    for name, rule, label in (
        ("backticks", rules_inline.backtick, None),
        ("autolink", rules_inline.autolink, None),
        ("html_inline", rules_inline.html_inline, None),
        ("link", rules_inline.link, 0),
        ("image", rules_inline.image, 1),
    ):
        parser.inline.ruler.at(name, _with_span(rule, label))
    return parser


def _with_span(rule: Any, label: int | None) -> Any:
    """Make a rule record where its tokens begin and end; `label` is the offset of its ``[``."""

    def spanned(state: "StateInline", silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        end = label_end = state.pos
        made = next((token for token in state.tokens[count:] if token.type != "text"), None)
        if not silent and made is not None:
            if label is not None:
                find = state.md.helpers.parseLinkLabel
                label_end = find(state, start + label, disableNested=not label)
            made.meta["span"] = MarkdownSpan(start, end, label_end)
        return True

    return spanned
