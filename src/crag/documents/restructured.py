"""reStructuredText with Sphinx's directives and roles as blocks, by docutils."""

# docutils has no types.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportArgumentType=false

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from threading import Lock
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.transforms import references
from docutils.utils import Reporter, new_document

from crag.documents.directives import reading_of, role_as_html
from crag.text.blocks import Block
from crag.text.html import blocks_of_html
from crag.text.visible import PLACE

_OF_DOCUTILS = {"table", "list-table", "csv-table", "figure", "replace", "unicode", "date",
                "image"}  # fmt: skip
"""Directives that docutils reads as Sphinx does."""
_ONE_AT_A_TIME = Lock()
_TAGS = {
    "paragraph": "p", "caption": "p", "attribution": "p", "bullet_list": "ul",
    "enumerated_list": "ol", "list_item": "li", "definition_list": "dl", "field_list": "dl",
    "option_list": "dl", "term": "dt", "field_name": "dt", "definition": "dd", "field_body": "dd",
    "description": "dd", "literal": "code", "strong": "strong", "emphasis": "em", "row": "tr",
}  # fmt: skip
_INLINE = {"code", "strong", "em"}
_RESOLVING = [
    references.Substitutions, references.PropagateTargets, references.AnonymousHyperlinks,
    references.IndirectHyperlinks, references.ExternalTargets,
]  # fmt: skip
"""What docutils does to let references lead somewhere, and substitutions stand for their text."""
_DEEPEST_HEADING = 6
_UNSEEN = (
    nodes.comment, nodes.target, nodes.system_message, nodes.title, nodes.label, nodes.image,
    nodes.substitution_definition, nodes.pending, nodes.transition, nodes.raw, nodes.classifier,
    nodes.footnote_reference,
)  # fmt: skip


def read_rst(text: str) -> list[Block]:
    """Return what readers of a text see, with its lines; docutils' complaints are not shown."""
    parser = Parser()
    settings = get_default_settings(parser)
    settings.report_level = settings.halt_level = Reporter.SEVERE_LEVEL + 1
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.line_length_limit = len(text) + 1
    document = new_document("", settings)
    with _directives_of_sphinx():
        parser.parse(text, document)
    document.transformer.add_transforms(_RESOLVING)
    document.transformer.apply_transforms()
    return blocks_of_html(_Writing(text.split("\n")).html(document))


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
        return lambda _name, raw, text, *_: ([_written(raw, name, text)], []), []

    with _ONE_AT_A_TIME:
        directives.directive, roles.role = any_directive, any_role
        try:
            yield
        finally:
            directives.directive, roles.role = directive, role


def _written(raw: str, role: str, text: str) -> nodes.inline:
    text = text.replace("\x00", "")
    return nodes.inline(raw, text, html=role_as_html(role, text))


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
            holder.insert(0, nodes.paragraph("", "", nodes.inline("", "", html=said)))
        elif title:
            words, _ = self.state.inline_text(title, self.lineno)
            holder.insert(0, nodes.caption("", "", *words, classes=["admonition-title"]))
        self.state.nested_parse(self.content, self.content_offset, holder)
        return [holder]


class _Note(_AnyDirective):
    """One whose argument is the beginning of its text."""

    optional_arguments = 0


class _Since(_AnyDirective):
    """One whose argument is a version, with text behind it."""

    optional_arguments = 2


class _Writing:
    """Writes docutils' nodes as HTML, each block with its lines, to be read as pages are."""

    def __init__(self, rows: list[str]) -> None:
        self._rows = rows
        self._level = 0

    def html(self, node: nodes.Node) -> str:  # noqa: C901, PLR0911, PLR0912 - one for each kind of node
        """Return a node with all within it."""
        match node:
            case nodes.Text():
                return escape(node.astext())
            case nodes.section():
                return self._section(node)
            case nodes.field() if not node.children[1].children:  # Such as `:orphan:`.
                return ""
            case nodes.literal_block() | nodes.doctest_block():
                return self._code(node)
            case nodes.table():
                return self._table(node)
            case nodes.line_block():
                lines = "<br>".join(map(self._within, node.findall(nodes.line)))
                return f"{self._opened('p', node)}{lines}</p>"
            case nodes.inline() if "html" in node:
                return str(node["html"])
            case nodes.reference():
                return f'<a href="{escape(node.get("refuri", ""))}">{self._within(node)}</a>'
            case nodes.problematic():  # Such as a reference to what is in another file.
                return escape(node.astext().strip("`_"))
            case nodes.admonition():
                return f"{self._opened('div', node)}{self._within(node)}</div>"
            case nodes.option_group():
                return f"<dt><code>{escape(', '.join(one.astext() for one in node))}</code></dt>"
            case nodes.target() if isinstance(node.parent, nodes.TextElement):
                return escape(node.astext())
            case _ if isinstance(node, _UNSEEN):
                return ""
            case _ if tag := _TAGS.get(node.tagname):
                return f"{self._opened(tag, node)}{self._within(node)}</{tag}>"
            case _:
                return self._within(node)

    def _within(self, node: nodes.Node) -> str:
        return "".join(map(self.html, node.children))

    def _opened(self, tag: str, node: nodes.Node) -> str:
        """Open an element, with the line that it begins at, and of paragraphs the last one."""
        if tag in _INLINE:
            return f"<{tag}>"
        first = self._line(node.parent if tag == "dt" else node)
        last = first + node.rawsource.count("\n") if tag == "p" else first
        start = f' start="{node["start"]}"' if node.get("start") else ""
        is_title = "admonition-title" in node["classes"]
        name = ' class="admonition-title"' if is_title else ""
        return f'<{tag} {PLACE}="{first}-{last}"{start}{name}>'

    def _line(self, node: nodes.Node) -> int:
        """Return where a node begins; docutils names lines of some nodes only."""
        if own := getattr(node, "line", None):
            return int(own)
        lines = [one.line for one in node.findall() if getattr(one, "line", None)]
        return min(lines, default=1)

    def _line_with(self, words: str, near: range, otherwise: int) -> int:
        """Return the first of some lines that holds these words."""
        rows = self._rows
        known = (at for at in near if 0 < at <= len(rows))
        return next((at for at in known if words in f"\n{rows[at - 1].strip()}\n"), otherwise)

    def _section(self, node: nodes.section) -> str:
        title, *others = node.children
        at = max((node.line or title.line or 1) - 1, 1)
        self._level += 1
        tag = f"h{min(self._level, _DEEPEST_HEADING)}"
        heading = f'<{tag} {PLACE}="{at}-{at + 1}">{self._within(title)}</{tag}>'
        text = "".join(map(self.html, others))
        self._level -= 1
        return heading + text

    def _code(self, node: nodes.Node) -> str:
        text, line = node.astext().strip("\n"), self._line(node)
        if isinstance(node.parent, nodes.entry):
            return f"<code>{escape(text)}</code>"
        # docutils names the line of what announces code, or that of its end.
        wanted = "\n" + text.split("\n", maxsplit=1)[0].strip() + "\n"
        line = self._line_with(wanted, range(line, line + 6), line)
        line = self._line_with(wanted, range(line, line - 4, -1), line)
        last = line + text.count("\n")
        language = f' class="language-{escape(node["language"])}"' if node.get("language") else ""
        return (
            f'<pre {PLACE}="{line}-{last}"{language}>\n{escape(text)}</pre>' if text.strip() else ""
        )

    def _table(self, node: nodes.table) -> str:
        title = "".join(self._within(one) for one in node.children if one.tagname == "title")
        caption = f"<caption>{title}</caption>" if title else ""
        heads = {row for head in node.findall(nodes.thead) for row in head.children}
        rows, starts, at = list(node.findall(nodes.row)), list[int](), self._line(node) - 1
        for row in rows:  # Of values with commas between docutils names no line.
            start, own = "".join(row.astext().split()[:1]) or "\n", self._line(row)
            at = own if own > at else self._line_with(start, range(at + 1, at + 50), at)
            starts.append(at)
        last = list(rows[-1].findall(nodes.paragraph))
        end = max((one.line + one.rawsource.count("\n") for one in last if one.line), default=at)
        text = ""
        for row, first, below in zip(rows, starts, [*starts[1:], end + 1], strict=True):
            cells = "".join(self._cell("th" if row in heads else "td", one) for one in row.children)
            text += f'<tr {PLACE}="{first}-{max(first, below - 1)}">{cells}</tr>'
        return f"{self._opened('table', node)}{caption}{text}</table>"

    def _cell(self, tag: str, entry: nodes.entry) -> str:
        across, down = (entry.get(name, 0) + 1 for name in ("morecols", "morerows"))
        return f'<{tag} colspan="{across}" rowspan="{down}">{self._within(entry)}</{tag}>'
