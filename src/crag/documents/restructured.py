"""reStructuredText with Sphinx's directives and roles as blocks, by docutils."""

# docutils has no types.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportArgumentType=false

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html import escape
from itertools import chain, takewhile
from threading import Lock
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.parsers.rst.states import Inliner
from docutils.transforms import references
from docutils.utils import new_document
from docutils.writers.html5_polyglot import HTMLTranslator, Writer

from crag.documents.directives import reading_of, role_as_html
from crag.text.blocks import Block
from crag.text.html import blocks_of_html
from crag.text.visible import PLACE

_OF_DOCUTILS = {"table", "list-table", "csv-table", "figure", "replace", "unicode", "date",
                "image"}  # fmt: skip
"""Directives that docutils reads as Sphinx does."""
_ONE_AT_A_TIME = Lock()
_RESOLVING = [
    references.Substitutions, references.PropagateTargets, references.AnonymousHyperlinks,
    references.IndirectHyperlinks, references.ExternalTargets,
]  # fmt: skip
"""What docutils does to let references lead somewhere, and substitutions stand for their text."""
_UNSEEN = (
    nodes.comment, nodes.system_message, nodes.label, nodes.image, nodes.classifier, nodes.pending,
    nodes.substitution_definition, nodes.footnote_reference,
)  # fmt: skip


def read_rst(text: str) -> list[Block]:
    """Return what readers of a text see, with its lines; docutils' complaints are not shown."""
    return blocks_of_html(rst_as_html(text))


def rst_as_html(text: str) -> str:
    """Return a text as a page whose elements say their lines."""
    inliner, settings = Inliner(), _settings().copy()
    inliner.problematic = lambda text, *_: nodes.Text(text.strip("`_"))
    settings.line_length_limit = len(text) + 1
    document = new_document("", settings)
    document.reporter.system_message = lambda *_, **_options: nodes.system_message()
    with _as_sphinx():
        Parser(inliner=inliner).parse(text, document)
    document.transformer.add_transforms(_RESOLVING)
    document.transformer.apply_transforms()
    writer = _Writer(document, text.split("\n"))
    document.walkabout(writer)
    return "".join(writer.body)


@cache
def _settings() -> Any:
    settings = get_default_settings(Parser, Writer)
    settings.initial_header_level = 1
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    return settings


@contextmanager
def _as_sphinx() -> Iterator[None]:
    """Replace how docutils finds directives and roles by how Sphinx does."""
    directive, role = directives.directive, roles.role

    def any_directive(name: str, language: Any, document: Any) -> Any:
        if name in _OF_DOCUTILS:
            return directive(name, language, document)
        arguments = int(reading_of(name, "")[0] != "note")
        return type(name, (_AnyDirective,), {"optional_arguments": arguments}), []

    def any_role(name: str, *_: Any) -> Any:
        return lambda _name, _raw, text, *_: ([_html(role_as_html(name, text))], []), []

    with _ONE_AT_A_TIME:
        directives.directive, roles.role = any_directive, any_role
        try:
            yield
        finally:
            directives.directive, roles.role = directive, role


class _AnyDirective(Directive):  # type: ignore[misc]  # docutils has no types
    """A directive whose options do not matter.

    The argument of a note is the beginning of its text, and text may stand behind a version.
    """

    has_content = True
    final_argument_whitespace = True
    option_spec = defaultdict(lambda: str, any=str)  # noqa: RUF012 - as docutils has it

    def run(self) -> list[nodes.Node]:
        """Return what it shows."""
        reading, title, text = reading_of(self.name, " ".join(self.arguments))
        if reading == "unseen":
            return []
        if reading == "code":
            text = "\n".join(self.content)
            code = nodes.literal_block(text, text, classes=[f"lang-{title}"] if title else [])
            code.line = self.content_offset + 1
            return [code] if text.strip() else []
        holder = nodes.admonition()
        holder.line = self.lineno
        if reading == "signature":
            said = "<br>".join(f"<code>{escape(name.strip())}</code>" for name in title.split("\n"))
            holder += nodes.paragraph("", "", _html(said))
        elif title:
            holder += nodes.title("", "", *self.state.inline_text(title, self.lineno)[0])
        if text:
            words, _ = self.state.inline_text(text, self.lineno)
            holder += nodes.paragraph("\n".join(self.arguments), "", *words)
        self.state.nested_parse(self.content, self.content_offset, holder)
        return [holder]


class _Writer(HTMLTranslator):  # type: ignore[misc]
    """Writes what is seen of a document as HTML, with its lines, to be read as pages are."""

    def __init__(self, document: nodes.document, written: list[str]) -> None:
        super().__init__(document)
        self._written = written

    def dispatch_visit(self, node: Any) -> None:
        """Write a node, or what is read in its place."""
        match node:
            case nodes.problematic() | nodes.citation_reference():  # Lead to another file.
                self._write_instead(escape(node.astext().strip("`_")))
            case nodes.reference() if node.astext():
                node.setdefault("refuri", "")
            case nodes.line_block():
                lines = ([*one.children, _html("<br>")] for one in node.findall(nodes.line))
                nodes.paragraph("", "", *chain(*lines), place=_line(node)).walkabout(self)
                raise nodes.SkipNode
            case nodes.literal():
                node["classes"] = ["code"]
            case nodes.literal_block() if isinstance(node.parent, nodes.entry):
                self._write_instead(f"<p><code>{escape(node.astext())}</code></p>")
            case nodes.table():
                self._place_rows(node)
            case _ if _is_unseen(node):
                raise nodes.SkipNode
        super().dispatch_visit(node)

    def _write_instead(self, html: str) -> None:
        self.body.append(html)
        raise nodes.SkipNode

    def _place_rows(self, table: nodes.table) -> None:
        """Give rows their lines; docutils names none in a `csv-table`, whose rows get all of it."""
        first = _line(table)
        indented = takewhile(lambda line: not line[:1].strip(), self._written[first + 1 :])
        whole = f"{first}-{first + 1 + len(list(indented))}"
        for row in table.findall(nodes.row):
            texts = row.findall(nodes.paragraph)
            last = max(((one.line or 0) + one.rawsource.count("\n") for one in texts), default=0)
            row["place"] = f"{_line(row)}-{last}" if last > first else whole

    def starttag(
        self, node: Any, tagname: str, suffix: str = "\n", empty: bool = False, **attributes: Any
    ) -> Any:
        """Open an element, with its lines."""
        if place := _place(node):
            attributes[PLACE] = place
        return super().starttag(node, tagname, suffix, empty, **attributes)

    def depart_field_name(self, node: nodes.field_name) -> None:
        """Write no colon."""
        del node
        self.body.append("</dt>")


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text.replace("\0", ""), format="html")


def _is_unseen(node: nodes.Node) -> bool:
    match node:
        case nodes.reference():
            return not node.astext()
        case nodes.target():
            return not isinstance(node.parent, nodes.TextElement)
        case nodes.field():  # Such as `:orphan:`.
            return not node.children[1].children
        case _:
            return isinstance(node, _UNSEEN)


def _place(node: Any) -> str:
    match node:
        case nodes.Element() if "place" in node:
            return str(node["place"])
        case nodes.title() if isinstance(node.parent, nodes.section):
            at = max((node.parent.line or node.line or 1) - 1, 1)
            return f"{at}-{at + 1}"
        case nodes.term() | nodes.field_name():
            return f"{_line(node.parent)}"
        case nodes.paragraph() | nodes.literal_block() | nodes.doctest_block():
            first, said = _line(node), node.rawsource or node.astext()
            return f"{first}-{first + said.strip(chr(10)).count(chr(10))}"
        case nodes.Element() if not isinstance(node, nodes.Inline):
            return f"{_line(node)}"
        case _:
            return ""


def _line(node: nodes.Node) -> int:
    """Return where a node begins; docutils names lines of some nodes only."""
    lines = (one.line for one in node.findall() if getattr(one, "line", None))
    line = getattr(node, "line", None) or min(lines, default=0)
    return int(line or (_line(node.parent) if node.parent else 1))
