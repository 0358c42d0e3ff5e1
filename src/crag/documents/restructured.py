"""reStructuredText with Sphinx's directives and roles as blocks, by docutils."""

# docutils has no types.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportArgumentType=false

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.statemachine import StringList
from docutils.utils import Reporter, new_document

from crag.documents.directives import reading_of, role_as_text
from crag.text.blocks import HARD_BREAK, Block, Item, Row, escaped, with_title
from crag.text.tables import Cell, one_head, spread

_OF_DOCUTILS = {"table", "list-table", "csv-table", "figure", "replace", "unicode", "date",
                "image"}  # fmt: skip
"""Directives that docutils reads as Sphinx does."""
_FIELDS_APART = {"orphan", "nosearch", "nocomments", "tocdepth", "no-search"}
_ONE_AT_A_TIME = Lock()
_ENDLESS_NAME = re.compile(r"(?<!\w)(?:\w{1,100}[-._+:]){300}")
_OTHER_BREAKS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
_ROLE = re.compile(r":([a-zA-Z][\w:.+-]{0,100}):`([^`]+)`")
_SUBSTITUTED = re.compile(r"\|([^|\s](?:[^|\n]*[^|\s])?)\|")


class RstText(NamedTuple):
    """What a text in reStructuredText shows."""

    fields: Mapping[str, str]
    """What it says of itself below its title, or above it: author, date, version."""
    place: tuple[int, int]
    """The first and last line of that."""
    blocks: list[Block]
    """With the lines of the text as their places."""


def read_rst(text: str) -> RstText:
    """Return what readers of a text see; docutils' complaints are not shown.

    Raises:
        ValueError: it holds a name for which docutils would need minutes.
    """
    if _ENDLESS_NAME.search(text):
        raise ValueError("a name of hundreds of parts")
    text = _OTHER_BREAKS.sub(" ", text)
    parser = Parser()
    settings = get_default_settings(parser)
    settings.report_level = settings.halt_level = Reporter.SEVERE_LEVEL + 1
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.line_length_limit = len(text) + 1
    document = new_document("", settings)
    with _directives_of_sphinx():
        parser.parse(text, document)
    return _Reading(document, text.split("\n")).text()


@contextmanager
def _directives_of_sphinx() -> Iterator[None]:
    """Replace how docutils finds directives and roles, as Sphinx does."""
    directive, role = directives.directive, roles.role
    classes = {"note": _Note, "since": _Since}

    def any_directive(name: str, language: Any, document: Any) -> Any:
        if name in _OF_DOCUTILS:
            return directive(name, language, document)
        return classes.get(reading_of(name, "")[0], _AnyDirective), []

    def any_role(name: str, *_: Any) -> Any:
        return lambda _name, raw, text, *_: ([_written(raw, role_as_text(name, text))], []), []

    with _ONE_AT_A_TIME:
        directives.directive, roles.role = any_directive, any_role
        try:
            yield
        finally:
            directives.directive, roles.role = directive, role


def _written(raw: str, text: str) -> nodes.inline:
    return nodes.inline(raw, text.replace("\x00", ""), written=True)


class _AnyOption(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return lambda value: value

    def __bool__(self) -> bool:
        return True


class _AnyDirective(Directive):  # type: ignore[misc]  # docutils has no types
    """A directive whose options do not matter."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption()

    def run(self) -> list[nodes.Node]:
        """Return what it shows."""
        reading, title = reading_of(self.name, " ".join(self.arguments))
        if reading == "unseen":
            return []
        if reading == "code":
            text = "\n".join(self.content)
            code = nodes.literal_block(text, text, language=title)
            code.line = self.content_offset + 1
            return [code] if text.strip() else []
        if reading == "signature":
            title = "\n".join(self.arguments)
        holder = nodes.admonition("", note=title, reading=reading)
        holder.line = self.lineno
        if reading == "since" and self.arguments:
            version, *rest = self.arguments
            holder["note"] = f"{title} {version}"
            rows = "".join(rest).split("\n") if rest else []
            is_beside = any(row in self.block_text.split("\n")[0] for row in rows[:1])
            above = self.lineno - is_beside
            places = [("", above + at) for at in range(len(rows))]
            self.state.nested_parse(StringList(rows, items=places), above, holder)
        self.state.nested_parse(self.content, self.content_offset, holder)
        return [holder]


class _Note(_AnyDirective):
    """One whose argument is the beginning of its text."""

    optional_arguments = 0


class _Since(_AnyDirective):
    """One whose argument is a version, with text behind it."""

    optional_arguments = 2


class _Reading:
    """Makes blocks of docutils' nodes."""

    def __init__(self, document: nodes.document, rows: Sequence[str]) -> None:
        self._document, self._rows = document, rows
        self._addresses, self._unnamed = _addresses(document)
        self._fields: dict[str, str] = {}
        self._place = (1, 1)

    def text(self) -> RstText:
        """Return all of the document."""
        blocks = self._blocks(self._document.children, 1)
        self._end(blocks, len(self._rows))
        return RstText(self._fields, self._place, blocks)

    def _blocks(self, found: Iterable[nodes.Node], level: int) -> list[Block]:
        return [block for node in found for block in self._block(node, level)]

    def _block(self, node: nodes.Node, level: int) -> list[Block]:  # noqa: C901, PLR0911, PLR0912 - one for each kind of node
        line = self._line(node)
        match node:
            case nodes.section():
                title, *others = node.children
                at = max((node.line or title.line or 1) - 1, 1)
                heading = Block("heading", at, at + 1, self._plain(title), level=level)
                return [heading, *self._blocks(others, level + 1)]
            case nodes.paragraph() | nodes.caption() | nodes.attribution():
                text, last = self._inline(node), line + node.rawsource.count("\n")
                return [Block("text", line, last, text)] if text else []
            case nodes.bullet_list() | nodes.enumerated_list():
                return self._list(node, level, line)
            case nodes.field_list() if level <= 2 and self._is_of_file(node):  # noqa: PLR2004 - above or right below the title
                for name, body in (one.children for one in node.children):
                    if (said := self._line_of(body)) and name.astext() not in _FIELDS_APART:
                        self._fields[name.astext()] = said
                        last = line + node.rawsource.rstrip().count("\n")
                        self._place = line, max(last, line + len(node.children) - 1)
                return []
            case nodes.definition_list() | nodes.field_list() | nodes.option_list():
                return self._definitions(node, level, line)
            case nodes.literal_block() | nodes.doctest_block():
                text = node.astext().strip("\n")
                first = self._line_of_code(text, line)
                made = Block("code", first, first, text, info=node.get("language", ""))
                return [made] if text.strip() else []
            case nodes.table():
                return self._table(node, line)
            case nodes.admonition():
                return self._note(node, level, line)
            case nodes.line_block():
                lines = map(self._inline, node.findall(nodes.line))
                return [Block("text", line, line, HARD_BREAK.join(filter(None, lines)))]
            case nodes.footnote():
                return self._blocks(node.children, level)
            case nodes.citation():
                label = node.children[0].astext()
                return with_title(label, self._blocks(node.children, level), line, line)
            case (
                nodes.comment()
                | nodes.target()
                | nodes.system_message()
                | nodes.title()
                | nodes.label()
                | nodes.image()
                | nodes.substitution_definition()
                | nodes.pending()
                | nodes.transition()
                | nodes.raw()
                | nodes.Text()
            ):
                return []
            case _:
                return self._blocks(node.children, level)

    def _line(self, node: nodes.Node) -> int:
        """Return where a node begins; docutils names lines of some nodes only."""
        if own := getattr(node, "line", None):
            return int(own)
        lines = [one.line for one in node.findall() if getattr(one, "line", None)]
        return min(lines, default=1)

    def _line_of_code(self, text: str, line: int) -> int:
        """Return where code begins: docutils names the line of what announces it, or its end."""
        wanted = text.split("\n", maxsplit=1)[0].strip()
        near = sorted(range(max(line - 3, 1), line + 6), key=lambda at: (at < line, abs(at - line)))
        rows = self._rows
        return next((at for at in near if at <= len(rows) and rows[at - 1].strip() == wanted), line)

    def _is_of_file(self, node: nodes.Node) -> bool:
        """Return whether fields stand at the beginning of the file or below its title."""
        around = [one for one in node.parent.children if not isinstance(one, nodes.comment)]
        of_title = isinstance(node.parent, nodes.section) and around.index(node) == 1
        return (of_title or around.index(node) == 0) and node.parent.parent in {
            None,
            self._document,
        }

    def _list(self, node: nodes.Node, level: int, line: int) -> list[Block]:
        start, is_bulleted = int(node.get("start", 1)), node.tagname == "bullet_list"
        made = ((at, self._blocks(one.children, level)) for at, one in enumerate(node, start))
        items = [Item("-" if is_bulleted else f"{at}.", held) for at, held in made if held]
        return [Block("list", line, line, items=items)] if items else []

    def _definitions(self, node: nodes.Node, level: int, line: int) -> list[Block]:
        items = []
        for one in node.children:
            *names, body = one.children
            terms = [self._inline(name) for name in names if not isinstance(name, nodes.classifier)]
            term = ", ".join(terms)
            if node.tagname == "option_list":
                term = f"`{', '.join(one.astext() for one in names[0].children)}`"
            elif "`" not in term:
                term = f"**{term}**"
            at = self._line(one)
            items.append(Item("-", with_title(term, self._blocks(body.children, level), at, at)))
        return [Block("list", line, line, items=[one for one in items if one.blocks])]

    def _table(self, node: nodes.Node, line: int) -> list[Block]:
        title = " ".join(self._inline(one) for one in node.children if one.tagname == "title")
        found = list(node.findall(nodes.row))
        cells = ([self._cell(entry) for entry in row.children] for row in found)
        rows, at = list[Row](), line
        for row, texts in zip(found, spread(cells), strict=True):
            at = self._line_of_row(row, texts, at)
            rows.append(Row(texts, at, at))
        heads = sum(isinstance(row.parent, nodes.thead) for row in found) or 1
        made = Block("table", line, line, rows=[one_head(rows[:heads]), *rows[heads:]])
        return [*with_title(title, [], line, line), made]

    def _line_of_row(self, row: nodes.Node, texts: Sequence[str], above: int) -> int:
        """Return the line of a row; those of values with commas between are looked for."""
        at = self._line(row)
        if at >= above:
            return at
        wanted = next(filter(None, texts), "").split()[:1]
        below = range(above, min(above + 50, len(self._rows)))
        return next((at + 1 for at in below if wanted and wanted[0] in self._rows[at]), above)

    def _cell(self, entry: nodes.Node) -> Cell:
        return Cell(
            self._line_of(entry), entry.get("morecols", 0) + 1, entry.get("morerows", 0) + 1
        )

    def _note(self, node: nodes.Node, level: int, line: int) -> list[Block]:
        title = _SUBSTITUTED.sub(lambda name: self._named(name[1]), node["note"])
        blocks = self._blocks(node.children, level)
        if node["reading"] == "signature":
            names = filter(None, map(str.strip, title.split("\n")))
            said = HARD_BREAK.join(f"`{name}`" for name in names)
            return [Block("text", line, line, said), *blocks] if said else blocks
        return with_title(self._with_roles(title), blocks, line, line)

    def _with_roles(self, title: str) -> str:
        """Write the title of a directive, which docutils does not parse, as Markdown."""
        shown = _ROLE.sub(lambda role: role_as_text(role[1], role[2]), title)
        return shown.replace("``", "`")

    def _line_of(self, node: nodes.Node) -> str:
        """Write what stands within a cell or a field on one line."""
        parts = []
        for one in node.children:
            if isinstance(one, nodes.paragraph | nodes.term):
                parts.append(self._inline(one).replace(HARD_BREAK, " "))
            elif isinstance(one, nodes.list_item):
                parts.append(f"• {self._line_of(one)}")
            elif isinstance(one, nodes.literal_block):
                parts.append(f"`{' '.join(one.astext().split())}`")
            elif not isinstance(one, nodes.Text | nodes.system_message | nodes.comment):
                parts.append(self._line_of(one))
        return " ".join(filter(None, parts))

    def _inline(self, node: nodes.Node) -> str:
        return " ".join("".join(map(self._marked, node.children)).split())

    def _plain(self, node: nodes.Node) -> str:
        """Write a title: what it has in bold or italics is as the rest."""
        return re.sub(r"(?<!\\)\*+(?=\S)|(?<=[^\s\\])\*+", "", self._inline(node))

    def _marked(self, node: nodes.Node) -> str:  # noqa: PLR0911 - one for each kind of node
        match node:
            case nodes.Text():
                return escaped(node.astext())
            case nodes.inline() if node.get("written"):
                return str(node.astext())
            case nodes.literal():
                ticks = "``" if "`" in node.astext() else "`"
                return f"{ticks}{node.astext()}{ticks}"
            case nodes.strong() | nodes.emphasis():
                mark = "**" if isinstance(node, nodes.strong) else "*"
                return f"{mark}{self._inline(node)}{mark}"
            case nodes.reference():
                label, address = self._inline(node), self._address(node)
                is_shown = address.startswith("http") and address.rstrip("/") not in label
                return f"{label} ({address})" if is_shown and label else label
            case nodes.substitution_reference():
                return self._named(node.astext())
            case nodes.target():
                return str(node.astext())
            case nodes.footnote_reference() | nodes.image() | nodes.system_message():
                return ""
            case _:
                return "".join(map(self._marked, node.children))

    def _address(self, node: nodes.reference) -> str:
        if address := node.get("refuri", ""):
            return str(address)
        if node.get("anonymous"):
            return next(self._unnamed, "")
        return self._addresses.get(node.get("refname", ""), "")

    def _named(self, name: str) -> str:
        """Return the text that a substitution stands for; a picture has none."""
        known = self._document.substitution_defs
        made = known.get(name) or known.get(self._document.substitution_names.get(name.lower(), ""))
        if made is None:
            return f"|{name}|"
        return (
            "" if any(isinstance(one, nodes.image) for one in made.children) else self._inline(made)
        )

    def _end(self, blocks: Sequence[Block], last: int) -> None:
        """Say where lists, tables and code end: before the next block begins."""
        ends = [*(block.first - 1 for block in blocks[1:]), last]
        for block, until in zip(blocks, ends, strict=False):
            if block.kind == "code":
                block.last = block.first + block.text.count("\n")
            elif block.items:
                block.last = self._last_with_text(block.first, until)
                starts = [item.blocks[0].first - 1 for item in block.items]
                for item, end in zip(block.items, [*starts[1:], block.last], strict=True):
                    self._end(item.blocks, end)
            elif block.rows:
                block.last = self._last_with_text(block.first, until)
                starts = [row.first - 1 for row in block.rows]
                block.rows = [
                    row._replace(last=self._last_with_text(row.first, end))
                    for row, end in zip(block.rows, [*starts[1:], block.last], strict=True)
                ]

    def _last_with_text(self, first: int, until: int) -> int:
        last = max(first, min(until, len(self._rows)))
        while last > first and not self._rows[last - 1].strip():
            last -= 1
        return last


def _addresses(document: nodes.document) -> tuple[dict[str, str], Iterator[str]]:
    """Return where names of targets lead, and where those without a name do, in order."""
    addresses: dict[str, str] = {}
    indirect: dict[str, str] = {}
    unnamed = []
    for target in document.findall(nodes.target):
        address = target.get("refuri", "")
        if target.get("anonymous"):
            unnamed.append(address)
        for name in target.get("names", ()):
            addresses[name] = address
            indirect[name] = target.get("refname", "")
    for name, other in indirect.items():
        addresses[name] = addresses[name] or addresses.get(other, "")
    return addresses, iter(unnamed)
