"""Markdown and its dialects (GitHub, MkDocs, MyST) as blocks, without tags of Jekyll and Hugo.

markdown-it makes HTML of it, each element with its lines, and that is read as pages are: HTML
within Markdown thus needs no reading of its own. Tags of template languages go where text stands,
never from code.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from textwrap import indent
from typing import TYPE_CHECKING, Any

import yaml

from crag.documents.directives import reading_of, role_as_html
from crag.text.html import Shown, blocks_of_html
from crag.text.visible import PLACE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\ufeff?-{3}[ \t]*\n(.*?)\n(?:-{3}|\.{3})[ \t]*(?:\n|\Z)", re.DOTALL)
_NO_WORDS = re.compile(r"true|false|null|.*\{\{.*", re.IGNORECASE)
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
_DIRECTIVE = re.compile(r"[ \t]*\{([\w:-]+)\}([^`]*)")
"""What MyST has behind the marks of a fence."""
_OPTIONS = re.compile(r"\A(?:---\n(?:.*\n)*?---(?:\n|\Z)|(?:[ \t]*:[\w-]+:.*(?:\n|\Z))*)")
_OF_RST = {"eval-rst", "list-table", "csv-table"}
_LANGUAGE = re.compile(r"\s*([\w+#-]*)")
_OPENED = "container_directive_open"
_LONGEST_NESTING = 40


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
        text = "\n" * above + text[matter.end() :]
    blocks = blocks_of_html(_parser().render(_TARGET.sub(r"\1#", text)))
    blocks.sort(key=lambda block: block.first)  # Notes go back to where they were written.
    return Shown(blocks, title, fields, (1, max(above, 1)))


def _fields(matter: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of fields: texts, numbers, days, and lists of them."""
    try:
        found = yaml.load(matter.replace("\t", " "), yaml.BaseLoader)  # noqa: S506 - which makes but texts of values
    except yaml.YAMLError:  # Such as a title with a colon: each line says what it can.
        found = dict(re.findall(r"^([\w -]+):[ \t]+[\"']?(.+?)[\"']?$", matter, re.MULTILINE))
    for name, value in found.items() if isinstance(found, dict) else ():
        values = value if isinstance(value, list) else [value]
        said = ", ".join(" ".join(one.split()) for one in values if one and isinstance(one, str))
        if said and len(said) <= _LONGEST_FIELD and not _NO_WORDS.fullmatch(said):
            yield " ".join(re.split(r"[\s_]+", name)), said


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.admon import admon_plugin, index
    from mdit_py_plugins.container import container_plugin
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
    for mark in "`~":
        container_plugin(parser, "directive", mark, _holds_blocks, _directive)
    parser.block.ruler.before("table", "crag_options", _pass_options)
    parser.core.ruler.after("block", "crag_text", _clean)
    parser.core.ruler.push("crag_places", _place)
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    return parser


def _pass_options(state: "StateBlock", first: int, end: int, silent: bool) -> bool:
    """Read over the options of a directive that was just opened."""
    opened = state.tokens[-1] if state.tokens else None
    if silent or opened is None or opened.type != _OPENED or opened.map != [first - 1, end]:
        return False
    options = _OPTIONS.match(state.getLines(first, end, state.blkIndent, keepLastLF=True))
    state.line = first + (options[0].count("\n") if options else 0)
    opened.meta["goes on at"] = state.line
    return state.line > first


def _clean(state: "StateCore") -> None:
    """Take out of text what tools replace, before what stands within its lines is parsed."""
    types = ["", *(token.type for token in state.tokens)]
    for before, token in zip(types, state.tokens, strict=False):
        if token.type == "inline":
            is_title = before == "admonition_title_open"
            text = token.content.strip('"') if is_title else token.content
            token.content = _TEMPLATE.sub(_kept, text)


def _kept(found: re.Match[str]) -> str:
    """Return what stays of code or a template: the code, and the title of a container."""
    title = (found["title"] or "").strip()
    is_shown = title and reading_of(found["name"], "")[0] in {"note", "titled"}
    return found["code"] or f"{title}:" * bool(is_shown)


def _place(state: "StateCore") -> None:
    """Give elements the lines they come from; paragraphs of items stay paragraphs."""
    lines = state.src.split("\n")
    for token in state.tokens:
        token.hidden = False
        if token.map is None or token.nesting < 0:
            continue
        first, last = token.map
        while last > first + 1 and not lines[min(last, len(lines)) - 1].strip():
            last -= 1
        if token.type == "fence":  # Its own lines are meant.
            first, last = first + 1, max(first + 1, last - 1)
        token.attrSet(PLACE, f"{first + 1}-{max(last, first + 1)}")


_Tokens = Sequence["Token"]


def _directive_of(info: str) -> tuple[str, str]:
    """Return the name and the argument of a directive, or nothing twice."""
    found = _DIRECTIVE.fullmatch(info)
    return (found[1], found[2].strip()) if found else ("", "")


def _holds_blocks(info: str, _marks: str) -> bool:
    name, argument = _directive_of(info)
    is_block = name and name not in _OF_RST
    return bool(is_block) and reading_of(name, argument)[0] not in {"code", "unseen"}


def _directive(_r: "RendererHTML", tokens: _Tokens, at: int, _options: Any, _env: Any) -> str:
    """Open, with its title, or close what holds blocks."""
    token = tokens[at]
    if token.nesting < 0:
        return "</div>"
    reading, title, text = reading_of(*_directive_of(token.info))
    below = tokens[at + 1]
    if text and below.type == "paragraph_open" and below.map:
        below.hidden = below.map[0] == token.meta.get("goes on at")
    shown = f"<p>{_parser().renderInline(text)}\n{'' if below.hidden else '</p>'}" if text else ""
    if reading == "signature":
        shown = f"<p><code>{escape(title)}</code></p>"
    elif title:
        shown = f'<p class="admonition-title">{_parser().renderInline(title)}</p>{shown}'
    return f'<div {PLACE}="{token.attrGet(PLACE)}">{shown}'


def _fence(_renderer: "RendererHTML", tokens: _Tokens, at: int, _options: Any, _env: Any) -> str:
    """Render a block of code, or of reStructuredText."""
    token = tokens[at]
    name, argument = _directive_of(token.info)
    if name in _OF_RST:
        from crag.documents.restructured import rst_as_html

        above, written = token.map[0] if token.map else 0, f"\n{token.content}"
        if name != "eval-rst":  # Its cells are Markdown.
            cells = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", token.content)
            cells = indent(_OPTIONS.sub(r"\g<0>\n", cells), "   ")
            above, written = above - 1, f".. {name}:: {argument}\n{cells}"
        return rst_as_html("\n" * above + written)
    if not name:
        return _code(token, token.content, _LANGUAGE.findall(token.info)[0])
    reading, language, _ = reading_of(name, argument)
    return _code(token, _OPTIONS.sub("", token.content), language) if reading == "code" else ""


def _code(token: "Token", text: str, language: str = "") -> str:
    name = f' class="language-{escape(language)}"' if language else ""
    return f'<pre {PLACE}="{token.attrGet(PLACE)}"{name}>\n{escape(text)}</pre>'


def _html_block(_r: "RendererHTML", tokens: _Tokens, at: int, _options: Any, _env: Any) -> str:
    """Give a block of HTML its lines."""
    return _TAG.sub(rf'<\1 {PLACE}="{tokens[at].attrGet(PLACE)}"', tokens[at].content)


def _image(renderer: "RendererHTML", tokens: _Tokens, at: int, options: Any, env: Any) -> str:
    words = renderer.renderInlineAsText(tokens[at].children or [], options, env)
    return f'<img alt="{escape(words)}">'


_RULES: Mapping[str, Any] = {
    "fence": _fence,
    "code_block": lambda _r, tokens, at, _o, _e: _code(tokens[at], tokens[at].content),
    "html_block": _html_block,
    "image": _image,
    "myst_role": lambda _r, tokens, at, _o, _e: role_as_html(
        tokens[at].meta["name"], tokens[at].content
    ),
    "footnote_open": lambda *_: "<div>",
    "footnote_close": lambda *_: "</div>",
    **dict.fromkeys(
        ["footnote_ref", "footnote_anchor", "footnote_block_open", "footnote_block_close",
         "myst_target", "myst_line_comment", "myst_block_break", "hr"],
        lambda *_: "",
    ),
}  # fmt: skip
"""By kind of token, what renders it otherwise than markdown-it does."""
