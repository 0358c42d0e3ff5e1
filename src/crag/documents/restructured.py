"""reStructuredText with Sphinx's directives and roles as blocks, by docutils."""

# docutils has no types.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportArgumentType=false

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from html import escape
from itertools import chain, takewhile
from threading import Lock
from typing import Any

from docutils import nodes, utils
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.parsers.rst.states import Inliner
from docutils.transforms import references
from docutils.utils import new_document
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from crag.documents.directives import LONGEST_PARSED, reading_of, role_as_html
from crag.text.blocks import Block
from crag.text.html import blocks_of_html
from crag.text.sentences import in_pieces
from crag.text.visible import PLACE

_OF_DOCUTILS = {"table", "list-table", "csv-table", "figure", "replace", "unicode", "date",
                "image"}  # fmt: skip
"""Directives that docutils reads as Sphinx does."""
_MOST_SUBSTITUTED = 20
"""How much longer a text may become by what it defines to stand for names."""
_SHORT_NAME = r"(?:(?!_)\w){1,100}(?:[-._+:](?:(?!_)\w){1,100}){0,20}"
"""As docutils has it, but for the limits."""
_ONE_AT_A_TIME = Lock()
_RESOLVING = [
    references.Substitutions, references.AnonymousHyperlinks, references.IndirectHyperlinks,
    references.ExternalTargets,
]  # fmt: skip
"""What docutils does to let references lead somewhere, and substitutions stand for their text."""
_UNSEEN = (
    nodes.comment, nodes.target, nodes.system_message, nodes.label, nodes.image, nodes.field,
    nodes.substitution_definition, nodes.pending, nodes.classifier, nodes.footnote_reference,
    nodes.reference,
)  # fmt: skip


def read_rst(text: str) -> list[Block]:
    """Return what readers of a text see, with its lines; docutils' complaints are not shown."""
    parser, settings = Parser(inliner=_inliner()), _settings().copy()
    settings.line_length_limit = len(text) + 1
    document = new_document("", settings)
    document.reporter.system_message = lambda *_, **_options: nodes.system_message()
    document.substitution_defs = _Substitutions(_MOST_SUBSTITUTED * len(text))
    with _as_sphinx():
        parser.parse(text, document)
    _join_targets(document)
    document.transformer.add_transforms(_RESOLVING)
    document.transformer.apply_transforms()
    _prepare(document, text.split("\n"))
    writer = _Writer(document)
    document.walkabout(writer)
    return blocks_of_html("".join(writer.body))


@cache
def _settings() -> Any:
    settings = get_default_settings(Parser, Writer)
    settings.initial_header_level = 1
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    return settings


@contextmanager
def _as_sphinx() -> Iterator[None]:
    """Replace how docutils finds directives and roles, as Sphinx does, and columns of a line.

    These it works out anew for each cell of a table.
    """
    directive, role, columns = directives.directive, roles.role, utils.column_indices

    def any_directive(name: str, language: Any, document: Any) -> Any:
        if name in _OF_DOCUTILS:
            return directive(name, language, document)
        arguments = {"note": 0, "since": 2}.get(reading_of(name, "")[0], 1)
        return type(name, (_AnyDirective,), {"optional_arguments": arguments}), []

    def any_role(name: str, *_: Any) -> Any:
        return lambda _name, _raw, text, *_: ([_html(role_as_html(name, text))], []), []

    with _ONE_AT_A_TIME:
        directives.directive, roles.role = any_directive, any_role
        utils.column_indices = lru_cache(maxsize=100)(columns)
        try:
            yield
        finally:
            directives.directive, roles.role, utils.column_indices = directive, role, columns


class _Substitutions(dict[str, nodes.substitution_definition]):
    """Definitions by name, of which each may stand for several others."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self._room = longest

    def __getitem__(self, name: str) -> nodes.substitution_definition:
        """Return what is to be put in place of a name."""
        definition = super().__getitem__(name)
        self._room -= len(name) + len(definition.astext())
        if self._room < 0:
            raise ValueError("its substitutions are longer than a text has")
        return definition


def _join_targets(document: nodes.document) -> None:
    """Let targets in a row lead where the last one does."""
    names: list[str] = []
    for node in document.findall(nodes.Element):
        if isinstance(node, nodes.target) and not node.children:
            names += node["names"]
            if "refuri" in node or "refname" in node:
                node["names"], names = names, []
        elif not isinstance(node, nodes.system_message):
            names = []


def _inliner() -> Inliner:
    """Return what parses paragraphs, in pieces and without complaints; names in it are bounded."""
    inliner = Inliner()
    inliner.simplename, parse = _SHORT_NAME, inliner.parse

    def parse_pieces(text: str, *where: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
        parsed = [parse(piece, *where)[0] for piece in in_pieces(text, LONGEST_PARSED)]
        return parsed[0] if len(parsed) == 1 else [nodes.inline("", "", *one) for one in parsed], []

    inliner.parse = parse_pieces
    inliner.problematic = lambda text, *_: nodes.Text(text.strip("`_"))
    return inliner


class _AnyOption(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return lambda value: value

    def __bool__(self) -> bool:
        return True


class _AnyDirective(Directive):  # type: ignore[misc]  # docutils has no types
    """A directive whose options do not matter.

    The argument of a note is the beginning of its text, and text may stand behind a version.
    """

    has_content = True
    final_argument_whitespace = True
    option_spec = _AnyOption()

    def run(self) -> list[nodes.Node]:
        """Return what it shows."""
        reading, title = reading_of(self.name, " ".join(self.arguments))
        if reading == "unseen":
            return []
        if reading == "code":
            text = "\n".join(self.content)
            code = nodes.literal_block(text, text, classes=[f"lang-{title}"] if title else [])
            code.line = self.content_offset + 1
            return [code] if text.strip() else []
        holder = nodes.admonition()
        holder.line = self.lineno
        if reading == "since" and self.arguments:
            version, *rest = self.arguments
            title = f"{title} {version}"
            for text in rest:
                words, _ = self.state.inline_text(text, self.lineno)
                holder += nodes.paragraph("\n".join(self.arguments), "", *words)
                holder[-1].line = self.lineno
        if reading == "signature":
            names = filter(None, map(str.strip, "\n".join(self.arguments).split("\n")))
            said = "<br>".join(f"<code>{escape(name)}</code>" for name in names)
            holder.insert(0, nodes.paragraph("", "", _html(said)))
        elif title:
            words, _ = self.state.inline_text(title, self.lineno)
            holder.insert(0, nodes.title("", "", *words))
        self.state.nested_parse(self.content, self.content_offset, holder)
        return [holder]


class _Writer(HTMLTranslator):  # type: ignore[misc]
    """Writes the blocks of a document as HTML, with their lines, to be read as pages are."""

    def starttag(
        self, node: Any, tagname: str, suffix: str = "\n", empty: bool = False, **attributes: Any
    ) -> Any:
        """Open an element."""
        if place := node.get("place"):
            attributes[PLACE] = place
        return super().starttag(node, tagname, suffix, empty, **attributes)

    def depart_field_name(self, node: nodes.field_name) -> None:
        """Write no colon."""
        del node
        self.body.append("</dt>")


def _prepare(document: nodes.document, written: list[str]) -> None:  # noqa: C901, PLR0912 - one for each kind of node
    """Take out what is not seen, and give each node its lines."""
    instead: dict[nodes.Node, nodes.Node | None] = {}
    for node in list(document.findall()):
        match node:
            case nodes.problematic() | nodes.citation_reference():  # Lead to another file.
                instead[node] = nodes.Text(node.astext().strip("`_"))
            case nodes.reference() if node.astext():
                node.setdefault("refuri", "")
            case nodes.line_block():
                lines = ([*one.children, _html("<br>")] for one in node.findall(nodes.line))
                place = f"{_line(node)}"
                instead[node] = nodes.paragraph("", "", *chain(*lines), place=place)
            case nodes.literal():
                node["classes"] = ["code"]
            case nodes.literal_block() if isinstance(node.parent, nodes.entry):
                code = nodes.literal("", node.astext(), classes=["code"])
                instead[node] = nodes.paragraph("", "", code)
            case nodes.table():
                _place_rows(node, written)
            case nodes.title() if isinstance(node.parent, nodes.section):
                at = max((node.parent.line or node.line or 1) - 1, 1)
                node["place"] = f"{at}-{at + 1}"
            case nodes.term() | nodes.field_name():
                node["place"] = f"{_line(node.parent)}"
            case nodes.paragraph() | nodes.literal_block() | nodes.doctest_block():
                first, said = _line(node), node.rawsource or node.astext()
                node["place"] = f"{first}-{first + said.strip(chr(10)).count(chr(10))}"
            case nodes.target() if isinstance(node.parent, nodes.TextElement):
                pass
            case nodes.field() if node.children[1].children:  # Unlike `:orphan:`.
                pass
            case _ if isinstance(node, _UNSEEN):
                instead[node] = None
            case nodes.Element() if "place" not in node and not isinstance(node, nodes.Inline):
                node["place"] = f"{_line(node)}"
    for element in document.findall(nodes.Element):
        if any(child in instead for child in element.children):
            shown = [instead.get(child, child) for child in element.children]
            element.children = [child for child in shown if child is not None]


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text.replace("\0", ""), format="html")


def _line(node: nodes.Node) -> int:
    """Return where a node begins; docutils names lines of some nodes only."""
    lines = (one.line for one in node.findall() if getattr(one, "line", None))
    return int(getattr(node, "line", None) or min(lines, default=1))


def _place_rows(table: nodes.table, written: list[str]) -> None:
    """Give rows their lines; of values with commas between docutils names none but the first."""
    rows, first = list(table.findall(nodes.row)), _line(table)
    starts = [_line(row) for row in rows]
    last = list(rows[-1].findall(nodes.paragraph))
    end = max((one.line + one.rawsource.count("\n") for one in last if one.line), default=first)
    if starts[0] < first:
        indented = takewhile(lambda line: not line[:1].strip(), written[first + 1 :])
        starts, end = [first] * len(rows), first + 1 + len(list(indented))
    table["place"] = f"{first}"
    for row, start, below in zip(rows, starts, [*starts[1:], end + 1], strict=True):
        row["place"] = f"{start}-{below - 1 if below > start else end}"
