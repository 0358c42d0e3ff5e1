"""Markdown and its dialects (GitHub, MkDocs, MyST) as blocks, without tags of Jekyll and Hugo.

markdown-it makes HTML of it, each element with its lines, and that is read as pages are: HTML
within Markdown thus needs no reading of its own. Tags of template languages go where text stands,
never from code.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from textwrap import indent
from typing import TYPE_CHECKING, Any

from crag.documents.directives import LONGEST_PARSED, reading_of, role_as_html
from crag.text.blocks import text_of
from crag.text.html import Shown, blocks_of_html
from crag.text.sentences import in_pieces
from crag.text.visible import PLACE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\ufeff?-{3}[ \t]*\n(.*?)\n(?:-{3}|\.{3})[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(
    r"^(?P<name>[A-Za-z][\w -]{0,40}?)[ \t]*:(?P<value>[ \t]+.*|)$"
    r"(?P<items>(?:\n(?:[ \t]+|- ).*)*)",
    re.MULTILINE,
)
_OF_TOOLS = re.compile(
    r"layout|template|slug|permalink|url|alias(?:es)?|path|.*sidebar.*|nav.*|toc.*|weight|order|.*position|"
    r"draft|publish(?:ed)?|hide.*|icon.*|images?|theme.*|css|js|id|redirect.*|type|parent|has.children|"
    r"grand.parent|math|mermaid|jupytext|kernelspec|myst|extensions?|format.*|.*title|lang|render.*|"
    r"menu.*|head|search|comments|cover.*|bibliography|output|tags|categor(?:y|ies)|keywords",
    re.IGNORECASE,
)
"""Names of fields that say how a page is built, or repeat its title."""
_LONGEST_FIELD = 300
_TEMPLATE = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`+)(?!`).{0,2000}?(?<!`)(?P=ticks)(?!`))"
    r"|\{%-? *comment\b.{0,2000}?endcomment *-?%\}|\{%.{0,500}?%\}|\{\{[<%].{0,500}?[>%]\}\}"
    r"|\{:[^{}]{0,300}\}|\{ ?[#.][\w-][^{}]{0,300}\}|^::: \w+\.[\s\S]*\Z"
    r"|^:{3,}[ \t]*\{?(?!figure)(?P<name>[\w-]+)\}?[ \t]*\[?(?P<title>[^\n\]{}]*)[^\n]*"
    r"|^[:/]{3,}[^\n]*",
    re.MULTILINE | re.DOTALL,
)
"""What tools replace or leave out: Jinja, Liquid, Hugo, kramdown, mkdocstrings, containers."""
_TAG = re.compile(r"<([A-Za-z][\w.-]*)")
_TARGET = re.compile(r"^( {0,3}\[[^\[\]\n]+\]:[ \t]*)\{%[^\n]*%\}[ \t]*$", re.MULTILINE)
"""Where a label leads, if a template says it."""
_OPTIONS = re.compile(r"(?:[ \t]*:[\w-]+:.*(?:\n|\Z))+|---\n[\s\S]*?\n---(?:\n|\Z)")
_LONGEST_NESTING = 40
_MOST_CELLS = 2
"""Cells of a table for each of its characters; what rows lack is read too."""


def read_markdown(text: str) -> Shown:
    """Return what readers of a text in Markdown see, with its lines, and its front matter.

    Raises:
        ContentError: its parts nest too deep.
    """
    title, fields, above = "", dict[str, str](), 0
    if matter := _FRONT_MATTER.match(text):
        named = dict(_fields(matter[1]))
        title = next((value for name, value in named.items() if name.lower() == "title"), "")
        fields = {name: value for name, value in named.items() if not _OF_TOOLS.fullmatch(name)}
        above = matter[0].count("\n")
        text = text[matter.end() :]
    blocks = blocks_of_html(_as_html(text, above))
    blocks.sort(key=lambda block: block.first)  # Notes go back to where they were written.
    return Shown(blocks, title, fields, (1, max(above, 1)))


def _fields(matter: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of fields: texts, numbers, days, and lists of them."""
    for field in _FIELD.finditer(matter):
        value = field["value"].strip()
        items = [*re.findall(r"^[ \t]*- (.*)", field["items"], re.MULTILINE)]
        if value:  # It may go on, and stand below a mark alone.
            value = " ".join(re.sub(r"^[>|][-+\d]*$", "", value).split() + field["items"].split())
        if value.startswith("[") and value.endswith("]"):
            items = value[1:-1].split(",")
        values = [one.strip().strip("\"'") for one in items or [value]]
        said = ", ".join(one for one in values if one and one[0] not in "{&*|>")
        if said and len(said) <= _LONGEST_FIELD and said.lower() not in {"true", "false", "null"}:
            yield " ".join(re.split(r"[\s_]+", field["name"])), said


def _as_html(text: str, above: int) -> str:
    """Render Markdown, of which so many lines stand above in the file."""
    return str(_parser().render(_TARGET.sub(r"\1#", text), {"above": above}))


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.admon import admon_plugin, index
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.myst_blocks import myst_block_plugin
    from mdit_py_plugins.myst_role import myst_role_plugin

    markers = ("!!!", "???", "???+", "===", "===+")  # With the tabs of pymdownx.
    index.MARKERS = markers  # type: ignore[assignment]
    index.MARKER_CHARS = {"!", "?", "="}
    parser = MarkdownIt("commonmark", {"maxNesting": _LONGEST_NESTING, "alerts": True})
    parser.enable(["table", "strikethrough"])
    for plugin in (
        admon_plugin, deflist_plugin, footnote_plugin, myst_block_plugin, myst_role_plugin,
    ):  # fmt: skip
        parser.use(plugin)
    parser.core.ruler.after("block", "crag_text", _clean)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.at("inline", _parse_pieces)
    parser.core.ruler.push("crag_places", _place)
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    return parser


def _table(state: "StateBlock", first: int, end: int, silent: bool) -> bool:
    """Parse a table, unless most of its cells are such that its rows lack."""
    from markdown_it.rules_block import table

    if not table(state, first, end, silent=True):
        return False
    below = next((line for line in range(first, end) if state.isEmpty(line)), end)
    columns = state.src.count("|", state.bMarks[first], state.eMarks[first])
    written = state.bMarks[below] - state.bMarks[first]
    is_filled = columns * (below - first) <= _MOST_CELLS * written
    return is_filled and (silent or table(state, first, end, silent=False))


def _clean(state: "StateCore") -> None:
    """Take out of text what tools replace, before what stands within its lines is parsed."""
    for number, token in enumerate(state.tokens):
        if token.type == "inline":
            text = _TEMPLATE.sub(_kept, token.content)
            is_title = state.tokens[number - 1].type == "admonition_title_open"
            token.content = text.strip('"') if is_title else text


def _parse_pieces(state: "StateCore") -> None:
    """Parse what stands within lines."""
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            for piece in in_pieces(token.content, LONGEST_PARSED):
                state.md.inline.parse(piece, state.md, state.env, token.children)


def _kept(found: re.Match[str]) -> str:
    """Return what stays of code or a template: the code, and the title of a container."""
    title = (found["title"] or "").strip()
    is_shown = title and reading_of(found["name"], "")[0] in {"note", "titled"}
    return found["code"] or f"{title}:" * bool(is_shown)


def _place(state: "StateCore") -> None:
    """Give elements the lines they come from; paragraphs of items stay paragraphs."""
    above, lines = state.env["above"], state.src.split("\n")
    for token in state.tokens:
        token.hidden = False
        if token.map is None or token.nesting < 0:
            continue
        first, last = token.map
        while last > first + 1 and not lines[min(last, len(lines)) - 1].strip():
            last -= 1
        if token.type == "fence":  # Its own lines are meant.
            first, last = first + 1, max(first + 1, last - 1)
        token.attrSet(PLACE, f"{above + first + 1}-{above + max(last, first + 1)}")


_Tokens = Sequence["Token"]


def _opened(token: "Token", title: str) -> str:
    words = title and _parser().renderInline(title, {"above": 0})
    shown = f'<p class="admonition-title">{words}</p>' if words else ""
    return f'<div {PLACE}="{token.attrGet(PLACE) or 1}">{shown}'


def _fence(_renderer: "RendererHTML", tokens: _Tokens, at: int, _options: Any, env: Any) -> str:
    """Render a block of code, or what a directive of MyST holds."""
    from markdown_it.common.utils import escapeHtml

    token = tokens[at]
    name, _, argument = token.info.strip()[1:].partition("}")
    if not token.info.strip().startswith("{") or not name:
        language = re.match(r"[\w+#-]*", token.info.strip())
        return _code(token, token.content, language[0] if language else "")
    body, above = token.content, env["above"] + (token.map[0] if token.map else 0) + 1
    options = _OPTIONS.match(body)
    if options:
        above += options[0].count("\n")
        body = body[options.end() :]
    reading, title = reading_of(name, argument.strip())
    if name in {"eval-rst", "list-table", "csv-table"}:
        from crag.documents.restructured import read_rst

        if name != "eval-rst":  # Its cells are Markdown.
            cells = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", body)
            head = f"{argument}\n{options[0] if options else ''}\n"
            body = f".. {name}:: {indent(f'{head}{cells}', '   ').lstrip()}"
        return "".join(
            _as_html(text_of([one]), above + one.first - 1 - (one.kind == "code"))
            for one in read_rst(body)
        )
    if reading == "unseen":
        return ""
    if reading == "code":
        return _code(token, body, title)
    if reading == "since":
        version, _, argument = argument.strip().partition(" ")
        title = f"{title} {version}"
    if reading in {"note", "since"} and argument.strip():
        body, above = f"{argument.strip()}\n{body}", above - 1
    inner = _as_html(body, above)
    if reading == "signature":
        return f"<div><p {PLACE}={above}><code>{escapeHtml(title)}</code></p>{inner}</div>"
    token.attrSet(PLACE, str(env["above"] + token.map[0] + 1 if token.map else 1))
    return f"{_opened(token, title)}{inner}</div>"


def _code(token: "Token", text: str, language: str) -> str:
    from markdown_it.common.utils import escapeHtml

    name = f' class="language-{escapeHtml(language)}"' if language else ""
    return f'<pre {PLACE}="{token.attrGet(PLACE) or 1}"{name}>\n{escapeHtml(text)}</pre>'


def _html_block(_r: "RendererHTML", tokens: _Tokens, at: int, _options: Any, _env: Any) -> str:
    """Give a block of HTML its lines."""
    place = tokens[at].attrGet(PLACE) or 1
    return _TAG.sub(rf'<\1 {PLACE}="{place}"', tokens[at].content)


def _image(renderer: "RendererHTML", tokens: _Tokens, at: int, options: Any, env: Any) -> str:
    from markdown_it.common.utils import escapeHtml

    words = renderer.renderInlineAsText(tokens[at].children or [], options, env)
    return f'<img alt="{escapeHtml(words)}">'


_RULES: Mapping[str, Any] = {
    "fence": _fence,
    "code_block": lambda _r, tokens, at, _o, _e: _code(tokens[at], tokens[at].content, ""),
    "html_block": _html_block,
    "image": _image,
    "myst_role": lambda _r, tokens, at, _o, _e: role_as_html(
        tokens[at].meta["name"], tokens[at].content
    ),
    "footnote_open": lambda _r, tokens, at, _o, _e: _opened(tokens[at], ""),
    "footnote_close": lambda *_: "</div>",
    **dict.fromkeys(
        ["footnote_ref", "footnote_anchor", "footnote_block_open", "footnote_block_close",
         "myst_target", "myst_line_comment", "myst_block_break", "hr"],
        lambda *_: "",
    ),
}  # fmt: skip
"""By kind of token, what renders it otherwise than markdown-it does."""
