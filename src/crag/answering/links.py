"""No picture, and no link to an address that no strip holds, leaves with an answer.

Clients draw an answer as Markdown: a picture loads without a click, and the address of a link can
carry away what a model has read. So an answer is parsed as they parse it, and what must not be
drawn is taken out of its source; everything else stays as it was written.
"""

import html
import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from crag.answering.markdown import DEEPEST, LONGEST, MarkdownBlock, MarkdownSpan, Text, parsed
from crag.state import Citation
from crag.text.marks import SINGLE

if TYPE_CHECKING:
    from linkify_it import LinkifyIt
    from markdown_it.token import Token

_GONE = "(link removed)"
_ROUNDS = 10
_MOST_WORK = 60_000
"""Characters parsed over all rounds."""
_MOST_NAMES = 500
"""The most words with a full stop inside, each of which may be the name of a host."""
_DEEPEST = DEEPEST - 8
"""The deepest nesting of brackets in which the parser still finds every link."""

_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_BLANK_LINE = re.compile(r"^[ \t]*$", re.MULTILINE)
_DEFINED = re.compile(
    r"^[ \t>*+\-\d.)]*\[(?:(?P<note>\^[^\]\n]+)|(?:\\.|[^\[\]\\])+)\](?P<colon>:)"
    r"(?(note)|[ \t]*\n?[ \t>]*\S+[ \t]*(?:$|[\"'(]))",
    re.MULTILINE | re.DOTALL,
)
"""A footnote, or the definition of a link as any client reads it."""
_LABEL_END = re.compile(r"(?<!\\)(?:\\\\)*\]:")
_LINE_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_TAG = re.compile(r"(?<!\\)(?:\\\\)*(?P<tag>(?P<comment><!--.*?-->)|<)", re.DOTALL)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPECIAL = re.compile(
    rf"{_ESCAPED.pattern}|&(?:#\d{{1,7}}|#x[0-9a-f]{{1,6}}|[a-z]\w{{1,31}});", re.IGNORECASE
)
_HEADS = (
    r"(?:(?:https?|ftp|file)://(?![\s<])|www\."
    r"|(?<![a-z0-9])(?:javascript|vbscript|data|mailto|xmpp):(?=[^\s<]))"
)
_MAIL = r"(?<![\w.+-])(?P<mail>[\w.+-]++@[\w$+=^~-]++(?:\.[\w$+=^~-]++)+)"
_HEAD = re.compile(_HEADS, re.IGNORECASE)
_BARE = re.compile(f"{_HEADS}|{_MAIL}", re.IGNORECASE)
_ADDRESS = re.compile(rf"{_HEADS}\S*|{_MAIL}", re.IGNORECASE)
_RUN = re.compile(r"[^ \t\n\v\f<]*")
_CERTAIN = re.compile(r"(?:[!#-&*-;=?-Z_a-z~]|\([!#-&*-;=?-Z_a-z~]*\))*")
"""What every client takes for a part of an address."""
_AFTER = ".,:;!?*_~'\"”»…"
_TARGET = re.compile(r"\]\(")
_TAIL = re.compile(r"[*_~'\"”»]*(?:\)[):*_~'\"”»]*)?[.,;!?…]?")
"""Punctuation that no client takes for a part of the address before it; of two such marks, some
clients take the first."""
_PATH_OR_PORT = re.compile(r"[/:]")
_PATH = re.compile(r"[/?#:][^\s<]*")
_NAMED = re.compile(r"(?<!/)/(?!/)|[(\[{\"\s]")
"""Characters that the name of a host cannot contain."""
_DOTTED = re.compile(r"\.[^\s.]")
_NAME = re.compile(r"[^\s<>()\[\]{}\"'“”‘’,;`*|]+")
_EXTENDED = re.compile(r"\||~~")
"""Marks of GitHub's tables and strikethrough: an address may begin right after one."""
_OPEN = re.compile(rf"\\.|{SINGLE}|[\[\]]|\n[ \t]*\n", re.DOTALL)
_OPENING = re.compile(rf"(?<!\\)(?:\\\\)*(?!{SINGLE})\[")
_ACTIVE = re.compile(rf"[\\`<&!]|(?!(?:{SINGLE})(?![\[(:]))\[|(?<=\])\(|[.@](?=\S)|//")


def without_links(answer: str, available: Sequence[Citation]) -> tuple[str, list[str]]:
    """Remove pictures, HTML and unknown addresses; return the answer and what was removed.

    An address stays if it is that of the source of a strip, or occurs in one. The label of a link
    or picture stays, and so does code; HTML is escaped, so that it is shown as text. A definition
    of a number, such as ``[1]: address``, must be that of the citation. A fence that nothing
    closes ends before its first empty line. A name that clients turn into a link, such as
    ``example.com``, becomes code.

    The result is parsed again until there is nothing to remove, by CommonMark alone and with the
    tables of GitHub. If there still is after ten rounds, and for what is nested too deep or too
    long to be parsed, each character that Markdown could read is escaped instead. Either way no
    parser finds a picture, tag or unknown address in it.
    """
    text = answer.replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n").strip()
    known = _KnownAddresses(available)
    removed: list[str] = []
    rounds = max(1, min(_ROUNDS, _MOST_WORK // (len(text) + 1)))
    for nth in range(rounds + 1):
        edits = _edits(text, known) if len(text) <= LONGEST else None
        if edits is None or (edits and nth == rounds):
            break
        if not edits:
            return text, removed
        removed += [edit.address for edit in edits if edit.address]
        text = _applied(text, edits).strip()
    return _escaped(text, removed), removed


class _Edit(NamedTuple):
    """A part of the source to replace."""

    start: int
    end: int
    by: str
    address: str = ""
    """What is removed, if it is an address."""


class _KnownAddresses:
    """The addresses that an answer may hold."""

    def __init__(self, available: Sequence[Citation]) -> None:
        self._available = available

    @cached_property
    def _addresses(self) -> dict[int, frozenset[str]]:
        """The addresses of each citation, by its number."""
        by_number: dict[int, frozenset[str]] = {}
        for citation in self._available:
            texts = [citation["source"]["url"], *_occurring(citation["text"])]
            addresses = frozenset(_normal(address) for address in texts if address)
            by_number[citation["number"]] = (
                by_number.get(citation["number"], frozenset()) | addresses
            )
        return by_number

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset().union(*self._addresses.values())

    def holds(self, address: str) -> bool:
        """Return whether an address is that of a citation."""
        return address == address.strip() and _normal(address) in self._all

    def holds_for(self, label: str, address: str) -> bool:
        """Return whether a label may be defined so: a number, only as its citation's address."""
        if not label.strip().isdecimal():
            return self.holds(address)
        return _normal(address) in self._addresses.get(int(label[:9]), ())

    def names(self, name: str) -> bool:
        """Return whether a strip names a host, file or mail address without a scheme."""
        return name in self._names

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


def _edits(text: str, known: _KnownAddresses) -> list[_Edit] | None:
    """Return what to change; None if it is too much to parse."""
    if len(_DOTTED.findall(text)) > _MOST_NAMES:
        return None
    for tables in (False, True) if _EXTENDED.search(text) else (False,):
        blocks, is_whole = parsed(text, tables=tables)
        if not is_whole:
            return None
        edits = [edit for block in blocks for edit in _of_block(text, block, known)]
        if edits:
            return edits
    return []


def _applied(text: str, edits: Sequence[_Edit]) -> str:
    pieces, end = [], 0
    for edit in sorted(edits):
        if edit.start >= end:
            pieces += [text[end : edit.start], edit.by]
            end = edit.end
    return "".join([*pieces, text[end:]])


def _of_block(source: str, block: MarkdownBlock, known: _KnownAddresses) -> Iterator[_Edit]:
    token = block.token
    whole = source[block.start : block.end]
    if token.type == "fence" and not token.level and block.end == len(source):
        yield from _closing(whole, block, token.markup)
    if token.type == "html_block":
        yield from _of_html(block.start, whole)
    if token.type == "definition":
        yield from _of_definition(block, whole, known)
    if token.type == "inline" and "]:" in whole:
        for defined in _DEFINED.finditer(whole):
            yield _inserted(block.start + defined.start("colon"), "\\")
    if token.type == "inline" and token.content:
        if block.text is None:
            yield from _of_unplaced(block, whole)
        else:
            yield from _of_text(block.text, known)


def _of_definition(block: MarkdownBlock, whole: str, known: _KnownAddresses) -> Iterator[_Edit]:
    """Remove the definition of an unknown address; escape one that defines something else."""
    label, address = block.token.meta["label"], block.token.meta["url"]
    start = whole.index("[")
    if known.holds_for(label, address) and not label.startswith("^"):
        return
    if _HEAD.match(address) and not known.holds(address):
        yield _Edit(block.start + start, block.start + len(whole.rstrip("\n")), "", address)
    else:
        colon = _LABEL_END.search(whole, start)
        yield _inserted(block.start + (colon.end() - 1 if colon else start), "\\")


def _of_html(start: int, whole: str) -> Iterator[_Edit]:
    """Remove comments, which nobody sees, and escape tags."""
    for tag in _TAG.finditer(whole):
        place = start + tag.start("tag")
        yield _Edit(place, start + tag.end(), "") if tag["comment"] else _inserted(place, "\\")


def _closing(whole: str, block: MarkdownBlock, markup: str) -> Iterator[_Edit]:
    """Close a fence at the end of an answer, unless it is closed."""
    first, _, rest = whole.partition("\n")
    last = _CLOSING.fullmatch(rest.rstrip("\n").rpartition("\n")[2])
    if last and last[1].startswith(markup):
        return
    empty = _BLANK_LINE.search(rest)
    content = rest[: empty.start()] if empty else rest
    start = block.start + len(first) + 1 + len(content.rstrip())
    yield _inserted(min(start, block.end), f"\n{markup}")


def _of_unplaced(block: MarkdownBlock, whole: str) -> Iterator[_Edit]:
    """Escape the lines of a block whose text has no known place in the source, if it has markup."""
    if any(token.type not in {"text", "softbreak"} for token in block.token.children or []):
        for active in _ACTIVE.finditer(whole):
            yield _inserted(block.start + active.start(), "\\")


def _of_text(text: Text, known: _KnownAddresses) -> Iterator[_Edit]:
    """Return what to change in the text of a paragraph, heading or cell."""
    spans: list[tuple[int, int]] = []
    code: list[tuple[int, int]] = []
    names: list[str] = []
    links = 0
    for token in text.tokens:
        links += token.nesting if token.type.startswith("link_") else 0
        if token.type == "text" and not links:
            names += _names(token.content)
        span: MarkdownSpan | None = token.meta.get("span")
        if span is None:
            continue
        if not spans or span.start >= spans[-1][1]:
            spans.append((span.start, span.end))
        if token.type == "code_inline":
            code.append((span.start, span.end))
        yield from _of_token(text, token, span, known)
    if _depth(text.content, code) > _DEEPEST:
        for start, end in _between(code, len(text.content)):
            for bracket in _OPENING.finditer(text.content, start, end):
                yield _inserted(text.place(bracket.end() - 1), "\\")
    for start, end in _between(spans, len(text.content)):
        yield from _of_prose(text, start, end, known)
    yield from _of_names(text, names, spans, known)


def _of_token(
    text: Text, token: "Token", span: MarkdownSpan, known: _KnownAddresses
) -> Iterator[_Edit]:
    """Return what to change in a tag, link or picture; a link's label is looked at by itself."""
    start, end = text.places_of(span.start, span.end)
    if token.type == "html_inline" and token.content.startswith("<!--"):
        yield _Edit(start, end, "")
    elif token.type == "html_inline" and not _LINE_BREAK.fullmatch(token.content):
        yield _inserted(start, "\\")
    if token.type not in {"link_open", "image"}:
        return
    is_picture = token.type == "image"
    address = str(token.attrs.get("src" if is_picture else "href") or "")
    if not is_picture and known.holds(address):
        return
    if token.info == "auto" and not _HEAD.match(address):
        yield _inserted(start, "\\")
    elif token.info == "auto":
        yield _Edit(start, end, _GONE, address)
    else:
        bracket = start + is_picture
        label_end = text.place(span.label_end)
        is_number = text.content[span.start + is_picture + 1 : span.label_end].strip().isdecimal()
        if is_picture or not is_number:
            yield _Edit(start, bracket + (not is_number), "")
        if label_end + is_number < end:
            yield _Edit(label_end + is_number, end, "", address or "#")


def _of_prose(text: Text, start: int, end: int, known: _KnownAddresses) -> Iterator[_Edit]:
    """Return what to change in words without code, links and tags: the addresses among them."""
    said, offsets = _decoded(text.content[start:end])
    cursor = 0
    for target in _TARGET.finditer(text.content, start, end):
        yield _inserted(text.place(target.end() - 1), "\\")  # Some clients read more as a link.
    while bare := _BARE.search(said, cursor):
        at = bare.start()
        run = bare[0] if bare["mail"] else _RUN.match(said, at)[0]  # type: ignore[index]
        cursor = at + len(run)
        written = _RUN.match(text.content, start + offsets[at])
        is_url = "://" in bare[0]
        whole = _trimmed(run)
        is_certain = bare["mail"] or (written and written[0] == run)
        # Punctuation before a tag, which ends the run as well, some clients take into the address.
        is_whole = len(whole) == len(run) or not said[cursor : cursor + 1].strip()
        is_certain = is_certain and is_whole and _TAIL.fullmatch(run, len(whole))
        if is_certain and (known.holds(whole) if is_url else known.names(whole)):
            continue
        certain = whole
        if not bare["mail"] and (match := _CERTAIN.match(said, at)):
            certain = match[0].rstrip(_AFTER)
            certain = certain if len(certain) > len(bare[0]) else whole
        cursor = at + len(certain)
        place, after = text.places_of(start + offsets[at], start + offsets[cursor])
        if is_url and known.holds(certain):
            yield _Edit(place, after, f"<{certain}>")
        else:
            yield _Edit(place, after, _GONE, certain)


def _of_names(
    text: Text, names: Sequence[str], spans: Sequence[tuple[int, int]], known: _KnownAddresses
) -> Iterator[_Edit]:
    """Make code of the names that a client would turn into links; they come in their order."""
    content = text.content
    cursor, later = 0, iter(spans)
    start, end = next(later, (len(content), len(content)))
    for name in names:
        while (at := content.find(name, cursor)) >= 0:
            if at >= start:
                cursor = max(cursor, end)
                start, end = next(later, (len(content), len(content)))
            elif _is_within_known(content, at, known):
                cursor = at + len(name)
            else:
                break
        if at < 0:
            continue
        cursor = at + len(name)
        path = _PATH.match(content, cursor)
        if not known.names(_trimmed(name + (path[0] if path else ""))):
            place, after = text.places_of(at, cursor)
            mark = "`" * _unused(content)
            escape = "\\" if content[:at].endswith("\\") else ""
            yield _Edit(place, after, f"{escape}{mark}{name}{mark}")


def _is_within_known(content: str, at: int, known: _KnownAddresses) -> bool:
    """Return whether a place is within an address that a strip holds whole."""
    start = content.rfind("http", 0, at)
    if start < 0 or content[max(start - 1, 0) : start].isalnum():
        return False
    run = _RUN.match(content, start)
    return run is not None and run.end() > at and known.holds(_trimmed(run[0]))


def _names(content: str) -> Iterator[str]:
    """Return the names in a text that clients turn into links though they have no scheme."""
    start = 0
    for piece in (*_NAMED.finditer(content), None):
        end = piece.start() if piece else len(content)
        said = content[max(start - 1, 0) : end]
        if _DOTTED.search(said):
            matches = _linkify().match(said) or ()
            yield from (match.raw for match in matches if not _HEAD.match(match.raw))
        start = piece.end() if piece else end


@cache
def _linkify() -> "LinkifyIt":
    from linkify_it import LinkifyIt

    return LinkifyIt()


def _unused(content: str) -> int:
    """Return the least number of backticks that do not stand in a row in a text."""
    rows = {len(row) for row in re.findall("`+", content)}
    return next(number for number in range(1, len(rows) + 2) if number not in rows)


def _trimmed(run: str) -> str:
    """Return an address without the punctuation after it, and a ``)`` that nothing opened."""
    opened, closed = run.count("("), run.count(")")
    end = len(run)
    while end and (run[end - 1] in _AFTER or (run[end - 1] == ")" and closed > opened)):
        closed -= run[end - 1] == ")"
        end -= 1
    return run[:end]


def _decoded(content: str) -> tuple[str, Sequence[int]]:
    """Return a text without escapes and entities, and where each character, and its end, stood."""
    if not _SPECIAL.search(content):
        return content, range(len(content) + 1)
    pieces: list[str] = []
    offsets: list[int] = []
    end = 0
    for special in _SPECIAL.finditer(content):
        meant = special[1] or html.unescape(special[0])
        pieces += [content[end : special.start()], meant]
        offsets += [*range(end, special.start()), *[special.start()] * len(meant)]
        end = special.end()
    return "".join([*pieces, content[end:]]), [*offsets, *range(end, len(content) + 1)]


def _between(spans: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    end = 0
    for start, after in (*spans, (length, length)):
        if start > end:
            yield end, start
        end = after


def _depth(content: str, code: Sequence[tuple[int, int]]) -> int:
    """Return how many brackets are open at once, at most; those of a paragraph end with it."""
    depth = deepest = 0
    for start, end in _between(code, len(content)):
        for mark in _OPEN.finditer(content, start, end):
            if mark[0] == "[":
                depth += 1
                deepest = max(depth, deepest)
            elif mark[0] == "]":
                depth = max(depth - 1, 0)
            elif mark[0][0] == "\n":
                depth = 0
    return deepest


def _occurring(text: str) -> Iterator[str]:
    """Return the addresses in a strip: those of links, and those that stand in the text."""
    for block in parsed(text, tables=False).blocks:
        if block.token.type == "definition":
            yield block.token.meta["url"]
        for token in block.token.children or ():
            if token.type in {"link_open", "image"}:
                yield str(token.attrs.get("href") or token.attrs.get("src") or "")
    for bare in _BARE.finditer(text):
        run = _RUN.match(text, bare.start())
        certain = _CERTAIN.match(text, bare.start())
        for address in (run, certain):
            if address and not bare["mail"]:
                yield _trimmed(address[0])
                yield html.unescape(_trimmed(address[0]))


def _normal(address: str) -> str:
    from markdown_it.common.normalize_url import normalizeLink

    return normalizeLink(address)


def _inserted(place: int, text: str) -> _Edit:
    return _Edit(place, place, text)


def _escaped(text: str, removed: list[str]) -> str:
    """Escape all that Markdown could read, but for citations, and remove all addresses."""

    def gone(bare: re.Match[str]) -> str:
        removed.append(bare[0])
        return _GONE

    plain = _ADDRESS.sub(gone, _ESCAPED.sub(r"\1", text))
    return _ACTIVE.sub(r"\\\g<0>", plain)
