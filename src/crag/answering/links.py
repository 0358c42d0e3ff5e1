"""No picture, and no link to an address that no strip holds, leaves with an answer.

Clients draw an answer as Markdown: a picture loads without a click, and the address of a link can
carry away what a model has read. So what Markdown makes links, pictures and HTML of is broken
outside code, and what clients still draw of it, as four kinds of parsers see it, is escaped.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from crag.answering.markdown import fences_closed, prose_and_code
from crag.state import Citation
from crag.text.marks import SINGLE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_GONE = "(link removed)"
_ROUNDS, _MOST_WORK = 5, 60_000
"""How often an answer is broken and parsed again, and the characters parsed over all rounds."""
_LONGEST = 30_000
"""Characters of an answer that is parsed in less than a second; of a longer one all is escaped."""
_MOST_NAMES = 500
"""The most words with a full stop inside, each of which may be the name of a host."""
_DEEPEST = 90
_SCHEME = (
    r"(?:(?:(?:https?|ftp|file):)?//(?=[^\s<>/])|www\.(?=[^\s<>])"
    r"|(?<![a-z0-9])(?:javascript|vbscript|data|mailto|xmpp):(?=[^\s<>]))"
)
_MAIL = r"(?<![\w.+-])[\w.+-]++@[\w$+=^~-]++(?:\.[\w$+=^~-]++)+"
_ADDRESS = re.compile(rf"{_SCHEME}[^\s<>]*|{_MAIL}", re.IGNORECASE)
_DOTTED = re.compile(r"\.[^\s.]")
_HIDDEN = re.compile(r"\\(?=[:/.@\w])|&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]\w{1,31});", re.IGNORECASE)
"""An escape or an entity that may stand for a part of an address."""
_RUN = re.compile(r"[^\s<>]+")
_CERTAIN = re.compile(r"(?:[!#-&*-;=?-Z_a-z~]|\([!#-&*-;=?-Z_a-z~]*\))*")
"""What every client takes for a part of an address."""
_AFTER = ".,:;!?*_~'\"”»…"
_TAIL = re.compile(r"[*_~'\"”»]*(?:\)[):*_~'\"”»]*)?[.,;!?…]?(?=\Z)")
"""Punctuation that no client takes for a part of the address before it."""
_PATH_OR_PORT = re.compile(r"[/:]")
_NAME = re.compile(r"[^\s<>()\[\]{}\"'“”‘’,;`*|]+")
_LABELLED = re.compile(
    r"\\.|(?P<picture>!?)\[(?P<label>[^\[\]\n\\]{0,300})\]\(\s*<?(?P<address>[^()\s<>]*(?:\([^()\s<>]*\)[^()\s<>]*){0,9})>?"
    r"(?:\s+[\"'(][^\n\"')]*[\"')])?\s*\)"
)
_SYNTAX = re.compile(
    r"\\.|<br ?/?>|<!--.*?-->|<(?P<auto>[^\s<>]+)>|<(?=[a-z/!?])|(?P<link>\]\([^()\s<>]+\))"
    r"|(?<=\])[(:]|!\[",
    re.IGNORECASE | re.DOTALL,
)
"""What Markdown makes links, pictures and HTML of, and escapes, which stay."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ACTIVE = re.compile(rf"[\\`<&!|~]|(?!(?:{SINGLE})(?![\[(:]))\[|(?<=\])[(:]|[.@](?=\S)|//")


def without_links(answer: str, available: Sequence[Citation]) -> tuple[str, list[str]]:
    """Remove pictures, HTML and unknown addresses; return the answer and what was removed.

    An address stays if it is that of the source of a strip, or occurs in one. The label of a link
    or picture stays, and so does code; HTML is escaped, so that it is shown as text. A fence that
    nothing closes ends before its first empty line. A name that clients turn into a link, such as
    ``example.com``, becomes code.

    The result is parsed by CommonMark alone and with the tables of GitHub. Where that still finds a
    picture, tag or unknown address, and in what is too long to be parsed, each character that
    Markdown could read is escaped instead.
    """
    text = answer.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n").strip()
    known, removed, names = _KnownAddresses(available), list[str](), set[str]()
    if len(_DOTTED.findall(text)) > _MOST_NAMES:
        return _all_escaped(text, removed), removed
    for _ in range(max(1, min(_ROUNDS, _MOST_WORK // (len(text) + 1)))):
        for _ in range(_ROUNDS):
            before, pieces = text, prose_and_code(fences_closed(text))
            pieces[::2] = [_broken(prose, known, names, removed) for prose in pieces[::2]]
            text = "".join(pieces).strip()
            if text == before:
                break
        drawn = set(_drawn(text, known)) if len(text) <= _LONGEST else {""}
        if not drawn:
            return text, removed
        if "" in drawn or drawn <= names:
            break
        names |= drawn
    return _all_escaped(text, removed), removed


class _KnownAddresses:
    """The addresses that an answer may hold."""

    def __init__(self, available: Sequence[Citation]) -> None:
        self._available = available

    @cached_property
    def _addresses(self) -> frozenset[str]:
        texts = [text for one in self._available for text in (one["source"]["url"], one["text"])]
        found = {one["source"]["url"] for one in self._available}
        for address in (found[0] for text in texts for found in _ADDRESS.finditer(text)):
            for part in (address, _certain(address)):
                found |= {_trimmed(part), html.unescape(_trimmed(part))}
        return frozenset(map(_normal, found - {""}))

    @cached_property
    def _names(self) -> frozenset[str]:
        names: set[str] = set()
        for citation in self._available:
            for text in (citation["text"], citation["source"]["url"]):
                for name in _NAME.findall(text):
                    if "://" not in name:
                        whole = name.rstrip(_AFTER)
                        names |= {whole, *whole.split("/"), *_PATH_OR_PORT.split(whole)}
        return frozenset(names)

    def holds(self, address: str) -> bool:
        """Return whether an address is that of a citation."""
        return _normal(address) in self._addresses

    def names(self, name: str) -> bool:
        """Return whether a strip names a host, file or mail address without a scheme."""
        return name in self._names


def _broken(prose: str, known: _KnownAddresses, names: Iterable[str], removed: list[str]) -> str:
    """Break the syntax of links, pictures and HTML; remove addresses, and make code of names."""

    def labelled(found: re.Match[str]) -> str:
        address = found["address"]
        if address is None or not (found["picture"] or not known.holds(address)):
            return found[0]
        removed.append(address or "#")
        return f"[{found['label']}]" if found["label"].strip().isdecimal() else found["label"]

    def broken(found: re.Match[str]) -> str:
        text, address = found[0], found["auto"] or (found["link"] or "")[2:-1]
        if text.startswith(("\\", "<br", "<BR")) or (address and known.holds(address)):
            return text
        if text.startswith("<!--"):
            return ""
        return f"\\{text}" if text[0] in "<(:" else f"{text[0]}\\{text[1:]}"

    for _ in range(_ROUNDS):
        prose = _LABELLED.sub(labelled, prose)
    prose = _RUN.sub(lambda run: _unhidden(run[0]), _SYNTAX.sub(broken, prose))
    hosts = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pattern = rf"(?P<address>{_ADDRESS.pattern})|(?P<name>{hosts or '(?!)'})"
    pieces, end = list[str](), 0
    for found in re.finditer(pattern, prose, re.IGNORECASE):
        start, after = found.span()
        if found["name"]:
            shown = f"`{found[0]}`"
        else:
            shown, after = _address(prose, start, after, known, removed)
        if start >= end:
            pieces += [prose[end:start], shown]
            end = after
    return "".join([*pieces, prose[end:]])


def _unhidden(run: str) -> str:
    """Write an address as it is read, without escapes and entities."""
    if not _HIDDEN.search(run):
        return run
    said = html.unescape(run.replace("\\", ""))
    return said if _ADDRESS.search(said) and not re.search(r"[\s<>\[\]`!]", said) else run


def _address(
    prose: str, start: int, end: int, known: _KnownAddresses, removed: list[str]
) -> tuple[str, int]:
    """Return what to write for an address, and where it ends."""
    run = prose[start:end]
    whole, certain = _trimmed(run), _trimmed(_certain(run))
    is_known = known.holds if "//" in run else known.names
    if is_known(whole) and _TAIL.fullmatch(run, len(whole)):
        return run, end
    if is_known(certain) and "://" in certain:
        before, after = prose[start - 1 : start], prose[start + len(certain) :][:1]
        shown = certain if (before, after) == ("<", ">") else f"<{certain}>"
        return shown, start + len(certain)
    removed.append(certain or whole)
    return _GONE, start + len(certain or whole)


def _drawn(text: str, known: _KnownAddresses) -> Iterator[str]:
    """Yield the names that clients make links of, and "" for any other link, picture or tag."""
    for parser in _parsers():
        tokens = parser.parse(text)
        while tokens:
            token = tokens.pop()
            children = token.children or []
            tokens += children
            is_break = token.content.lower() in {"<br>", "<br/>", "<br />"}
            if (
                token.type in {"image", "html_block"}
                or token.level > _DEEPEST
                or (token.type == "html_inline" and not is_break)
            ):
                yield ""
            for link, label in pairwise(children):
                if link.type == "link_open" and not known.holds(str(link.attrs["href"])):
                    name = label.content if link.markup == "linkify" else ""
                    if not (name and known.names(_trimmed(name))):
                        yield name


@cache
def _parsers() -> "tuple[MarkdownIt, ...]":
    from markdown_it import MarkdownIt

    class Parser(MarkdownIt):
        """A parser that accepts every address, since clients differ in which ones they refuse."""

        def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the parser's name
            return True

    alone, extended = (Parser("commonmark", {"linkify": True, "maxNesting": 100}) for _ in "12")
    alone.enable("linkify")
    extended.enable(["linkify", "table", "strikethrough"])
    return alone, extended


def _certain(run: str) -> str:
    found = _CERTAIN.match(run)
    return found[0] if found else ""


def _trimmed(run: str) -> str:
    """Return an address without the punctuation after it, and a ``)`` that nothing opened."""
    opened, closed = run.count("("), run.count(")")
    end = len(run)
    while end and (run[end - 1] in _AFTER or (run[end - 1] == ")" and closed > opened)):
        closed -= run[end - 1] == ")"
        end -= 1
    return run[:end]


def _normal(address: str) -> str:
    from markdown_it.common.normalize_url import normalizeLink

    return normalizeLink(address)


def _all_escaped(text: str, removed: list[str]) -> str:
    """Escape all that Markdown could read, but for citations, and remove all addresses."""

    def gone(bare: re.Match[str]) -> str:
        removed.append(bare[0])
        return _GONE

    plain = _ADDRESS.sub(gone, _ESCAPED.sub(r"\1", text))
    return _ACTIVE.sub(r"\\\g<0>", plain)
