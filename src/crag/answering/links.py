"""No picture, and no link to an address that no strip holds, leaves with an answer.

Clients draw an answer as Markdown: a picture loads without a click, and the address of a link can
carry away what a model has read. So what Markdown makes links, pictures and HTML of is broken
outside code, and what two parsers still draw of it is escaped.
"""

import html
import re
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from crag.state import Citation
from crag.text.marks import SINGLE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_CODE = re.compile(
    r"\\."
    r"|(?P<fence>^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9}(?P<ticks>`{3,}(?=[^`\n]*$)|~{3,})"
    r".*?(?:^[ \t>]*(?P=ticks)[`~]*[ \t]*$|\Z))"
    r"|(?P<span>(?P<run>`+)(?!`)(?:(?!\n[ \t]*(?:\n|[|#>]|[-*+][ \t])).)+?(?<!`)(?P=run)(?!`))"
    r"|`+",
    re.MULTILINE | re.DOTALL,
)
"""Code in a fence, which lasts to the end where nothing closes it, or between backticks of one
paragraph; escapes and other backticks are matched so that nothing begins within them."""
_GONE = "(link removed)"
_ROUNDS = 5
"""How often an answer is broken again, after that may have formed a new link."""
_LONGEST = 30_000
"""Characters of an answer that is parsed in less than a second; of a longer one all is escaped."""
_DEEPEST = 90
_CERTAIN = r"(?:[!#-&*-;=?-Z_a-z~]|\([!#-&*-;=?-Z_a-z~]*\))*"
"""What every client takes for a part of an address."""
_SCHEME = (
    r"(?:(?:(?:https?|ftp|file):)?//(?=[^\s<>/])|www\.(?=[^\s<>])"
    r"|(?<![a-z0-9])(?:javascript|vbscript|data|mailto|xmpp):(?=[^\s<>]))"
)
_MAIL = r"(?<![\w.+-])[\w.+-]++@[\w$+=^~-]++(?:\.[\w$+=^~-]++)+"
_ADDRESS = re.compile(rf"{_SCHEME}{_CERTAIN}|{_MAIL}", re.IGNORECASE)
_WHOLE_ADDRESS = re.compile(rf"{_SCHEME}[^\s<>]*", re.IGNORECASE)
_AFTER = ".,:;!?*_~'\"”»…"
_ENDS = re.compile(r"[*'\"]*(?:\)[):*_~'\"”»]*)?[.,;!?]?(?![^\s<>])")
"""Punctuation after an address that no client takes for a part of it."""
_NAME = re.compile(r"[^\s<>()\[\]{}\"'“”‘’,;`*|]+")
_LABELLED = re.compile(
    r"\\.|(?P<picture>!?)\[(?P<label>[^\[\]\n\\]{0,300})\]\(\s*<?(?P<address>[^()\s<>]*"
    r"(?:\([^()\s<>]*\)[^()\s<>]*){0,9})>?(?:\s+[\"'(][^\n\"')]*[\"')])?\s*\)"
)
_BEFORE = r"(?<![\w.@/`-])"
_ACTIVE = re.compile(
    r"(?P<kept>\\.|<br ?/?>)|<(?P<auto>[^\s<>]+)>|\]\((?P<target>[^()\s<>]+)\)"
    r"|(?P<opening><(?=[a-z/!?])|(?<=\])[(:]|!(?=\[))"
    rf"|(?P<address>{_ADDRESS.pattern})"
    rf"|(?P<name>(?>(?:{_BEFORE}|(?<={_BEFORE}_)|(?<={_BEFORE}__))(?=[^\W_])"
    r"(?!(?:\d+\.)+(?!(?:\w\w|com|net|org|pro|web|info|name|shop)\b)[^\W\d])"  # As of a list.
    r"[\w-]++(?:\.[\w-]++)*\.[^\W\d_]{2,}+(?!\.?_?[^\W_]|-)"
    rf"(?:[:/?#]{_CERTAIN})?)(?!`))",
    re.IGNORECASE | re.DOTALL,
)
"""What Markdown or a client makes links, pictures and HTML of, and escapes, which stay."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ANY = re.compile(rf"[\\`<&!|~]|(?!(?:{SINGLE})(?![\[(:]))\[|(?<=\])[(:]|[.@](?=\S)|//")


def without_links(answer: str, available: Sequence[Citation]) -> tuple[str, list[str]]:
    """Remove pictures, HTML and unknown addresses; return the answer and what was removed.

    An address stays if it is that of the source of a strip, or occurs in one. The label of a link
    or picture stays, and so does code; HTML is escaped, so that it is shown as text. A name that no
    strip has and that clients may turn into a link, such as ``example.com``, becomes code.

    The result is parsed by CommonMark alone and with the tables of GitHub. Where that still finds a
    picture, tag or unknown address, and in what is too long to be parsed, each character that
    Markdown could read is escaped instead.
    """
    text = answer.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n").strip()
    known, removed = _KnownAddresses(available), list[str]()
    for _ in range(_ROUNDS):
        before, pieces = text, prose_and_code(text)
        pieces[::2] = [_broken(prose, known, removed) for prose in pieces[::2]]
        text = "".join(pieces).strip()
        if text == before:
            break
    is_safe = len(text) <= _LONGEST and not _is_drawn(text, known)
    return text if is_safe else _all_escaped(text, removed), removed


def prose_and_code(source: str) -> list[str]:
    """Split an answer into its pieces: prose, code, prose and so on, from prose to prose."""
    pieces, end = list[str](), 0
    for found in _CODE.finditer(source):
        if found["fence"] or found["span"]:
            pieces += [source[end : found.start()], found[0]]
            end = found.end()
    return [*pieces, source[end:]]


class _KnownAddresses:
    """The addresses that an answer may hold."""

    def __init__(self, available: Sequence[Citation]) -> None:
        self._texts = [text for one in available for text in (one["source"]["url"], one["text"])]

    @cached_property
    def _addresses(self) -> frozenset[str]:
        texts = "\n".join(self._texts)
        found = {one[0] for find in (_ADDRESS, _WHOLE_ADDRESS) for one in find.finditer(texts)}
        trimmed = {_trimmed(address) for address in found}
        read = {html.unescape(address) for address in trimmed}
        return frozenset(map(_normal, {*self._texts[::2], *trimmed, *read} - {""}))

    @cached_property
    def _names(self) -> frozenset[str]:
        names = [name.rstrip(_AFTER) for text in self._texts for name in _NAME.findall(text)]
        local = [name for name in names if "://" not in name]
        return frozenset(part for name in local for part in [name, *re.split("[/:]", name)])

    def holds(self, address: str) -> bool:
        """Return whether an address is that of a citation."""
        return _normal(address) in self._addresses

    def names(self, name: str) -> bool:
        """Return whether a strip names a host, file or mail address without a scheme."""
        return name in self._names


def _broken(prose: str, known: _KnownAddresses, removed: list[str]) -> str:
    """Break the syntax of links, pictures and HTML; remove addresses, and make code of names."""

    def labelled(found: re.Match[str]) -> str:
        address = found["address"]
        if address is None or not (found["picture"] or not known.holds(address)):
            return found[0]
        removed.append(address or "#")
        return f"[{found['label']}]" if found["label"].strip().isdecimal() else found["label"]

    def checked(found: re.Match[str]) -> str:
        text, target = found[0], found["auto"] or found["target"]
        if found["kept"] or (target and known.holds(target)):
            return text
        if target or found["opening"]:
            at = 1 if found["target"] or found["opening"] == "!" else 0
            return f"{text[:at]}\\{text[at:]}"
        address = _trimmed(text)
        rest, is_known = text[len(address) :], known.holds if "//" in address else known.names
        if not is_known(address):
            removed.extend([address] if found["address"] else [])
            return _GONE + rest if found["address"] else f"`{address}`{rest}"
        ended = _ENDS.match(found.string, found.start() + len(address)) is not None
        return text if ended or "://" not in address else f"<{address}>{rest}"

    for _ in range(_ROUNDS):
        prose = _LABELLED.sub(labelled, prose)
    return _ACTIVE.sub(checked, prose)


def _is_drawn(text: str, known: _KnownAddresses) -> bool:
    """Return whether clients make a picture or tag of something, or a link that is not known."""
    for parser in _parsers():
        tokens = parser.parse(text)
        while tokens:
            token = tokens.pop()
            children = token.children or []
            tokens += children
            is_tag = token.type == "html_inline" and not re.fullmatch("<br ?/?>", token.content)
            if token.type in {"image", "html_block"} or is_tag or token.level > _DEEPEST:
                return True
            for link, label in pairwise(children):
                if link.type == "link_open" and not known.holds(str(link.attrs["href"])):
                    name = _trimmed(label.content) if link.markup == "linkify" else ""
                    if not known.names(name):
                        return True
    return False


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
    for parser in (alone, extended):
        parser.parse("a")  # The first use compiles its rules, which threads would see half done.
    return alone, extended


def _trimmed(run: str) -> str:
    """Return an address without the punctuation after it, and a ``)`` that nothing opened."""
    opened, closed = run.count("("), run.count(")")
    end = len(run)
    while end and (run[end - 1] in _AFTER or (run[end - 1] == ")" and closed > opened)):
        closed -= run[end - 1] == ")"
        end -= 1
    return run[:end] or run


def _normal(address: str) -> str:
    from markdown_it.common.normalize_url import normalizeLink

    return normalizeLink(address)


def _all_escaped(text: str, removed: list[str]) -> str:
    """Escape all that Markdown could read, but for citations, and remove all addresses."""
    plain = _ESCAPED.sub(r"\1", text)
    removed += (found[0] for found in _ADDRESS.finditer(plain))
    return _ANY.sub(r"\\\g<0>", _ADDRESS.sub(_GONE, plain))
