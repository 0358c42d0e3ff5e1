"""A piece of documentation as its readers see it: without what only the tools that draw it read.

Notes, directives and roles of reStructuredText and of Markdown's dialects (MkDocs, MyST) become
words and blocks of code, links their labels, and code that was cut has both of its fences.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from textwrap import dedent
from typing import NamedTuple

from crag.text.wholes import shows_code

_FENCE = re.compile(
    r"\s*(?:>\s*)*(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<name>[\w:.+-]+)\})?(?P<rest>.*)$"
)
_NOTE = re.compile(r'\s*(?:!!!|\?\?\?\+?)\s+(?P<name>\w[\w -]*?)\s*(?:"(?P<title>[^"]*)")?\s*$')
_ALERT = re.compile(r"\s*>\s*\[!(?P<name>\w[\w-]*)\][+-]?[ \t]*(?P<title>.*?)\s*$")
"""A note as GitHub and Obsidian write it."""
_QUOTED = re.compile(r"\s*> ?")
_TAB = re.compile(r'\s*===\+?\s+"(?P<title>[^"]*)"\s*$')
_DIRECTIVE = re.compile(r"\s*\.\. (?:\|[^|]+\| )?(?P<name>[\w:.+-]+?)::(?:\s+(?P<rest>.*))?$")
_TARGET = re.compile(r"\s*\.\. _.*:|\s*\([\w-]+\)=\s*$")
_OPTION = re.compile(r"\s*:[\w-]+:")
_UNDERLINE = re.compile(r"([=\-~^*+#])\1{2,}\s*$")
_NUMBERED = re.compile(r"^(\s*)#\.(?=\s)")
"""An item that Sphinx numbers."""
_FOOTNOTE = re.compile(r"^\s*(?:\[\^[\w-]+\]:|\.\. \[(?:#[\w-]*|\*|\w+)\])\s+(?=\S)")
_DEFINED = re.compile(r"(?<=[^\s:])[ \t]*\n {0,3}:[ \t]+(?=\S)")
"""Between a term and what it means."""
_FIELD = re.compile(r"^(\s*):([a-zA-Z][\w -]{0,40}):(?=\s+\S)")
_GRID, _GRID_RULE = re.compile(r"\s*[+|].*[+|]\s*$"), re.compile(r"\s*\+[-=+]+\+\s*$")
_LIST_ROW = re.compile(r"(?P<row>\* )?(?P<cell>[ ]*- ?)?(?P<text>.*)$")
_CODE = {"code", "code-block", "sourcecode", "parsed-literal", "doctest", "prompt", "console",
         "testcode", "highlight", "python", "ipython"}  # fmt: skip
_UNSEEN = {"toctree", "contents", "include", "literalinclude", "raw", "index", "image", "figure",
           "currentmodule", "module", "py:module", "meta", "role", "program", "autosummary",
           "automodule"}  # fmt: skip
_TITLED = {"admonition", "topic", "rubric", "sidebar", "dropdown", "tab-item", "card", "details",
           "tab", "collapse", "grid-item-card", "table"}  # fmt: skip
"""Directives whose first line is a title, and not text."""
_HOLDERS = {"tabs", "tab-set", "tab-set-code", "grid", "container", "compound", "only", "ifconfig",
            "class", "rst-class", "hlist", "centered", "epigraph", "highlights", "pull-quote",
            "card-body", "versionremoved"}  # fmt: skip
"""Directives that say how their text looks; what stands on their first line is no text."""
_ROWS_OF_LISTS = {"list-table", "flat-table"}
_LABELS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "seealso": "See also",
}
_NOTES = {"note", "tip", "hint", "warning", "important", "caution", "danger", "attention", "error",
          "info", "todo", "seealso"}  # fmt: skip
_TAGS = "a|abbr|b|br|code|details|div|em|i|img|kbd|p|small|span|strong|sub|summary|sup|u"
_INLINE = re.compile(
    r"(?P<rst_literal>(?<!`)``(?!`)[^`]+``(?!`))"
    r"|:[a-zA-Z][\w:.+-]{0,60}:`(?P<role>[^`]{1,300})`"
    r"|\{[a-zA-Z][\w:.+-]{0,60}\}`(?P<myst>[^`]{1,300})`"
    r"|(?<![`\w])`(?P<label>[^`<]{1,300})<(?P<address>[^<>`]{1,500})>`__?"
    r"|(?<![`\w])`(?P<reference>[^`]{1,300})`__?(?!\w)"
    r"|(?P<literal>(?<!`)`[^`\n]+`(?!`))"
    r"|\[?!\[(?P<picture>[^\]\n]{0,200})\]\([^()\n]{0,1000}\)(?:\]\([^()\n]{0,1000}\))?"
    r"|(?<![\w\]])\[(?P<text>(?:[^\]\n]|\n(?!\s*\n)){0,200})\]\((?P<target>\{%[^%\n]*%\}[^()\s]*"
    r"|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"\n]*\")?\)"
    r"|(?<![\w\]])\[(?P<named>[^\]\n]{1,200})\]\[[^\]\n]{0,500}\](?!\[)"
    r"|(?P<footnote>\[\^(?:\d{1,3}|[A-Za-z]\w+)\](?![*+?{(:])| ?\[(?:#[\w-]*|\*|\d{1,3})\]_(?!\w))"
    r"|(?P<comment><!--(?:(?!-->)[\s\S]){0,500}-->)"
    r"|(?P<attributes>\{(?::\s|#[\w-]|\.[a-z])[^{}\n]{0,300}\}|\{%[^%\n]{0,500}%\})"
    rf"|(?P<tag></?(?:{_TAGS})(?:\s[^<>\n]{{0,500}})?/?>)",
)
_ROLE_TARGET = re.compile(r"\s*<[^<>]*>\s*\Z")
_BLOCK = re.compile(
    r"^\s*(?:[-*+•]\s|[|>]|#{1,6}\s|\d{1,3}[.)]\s|```|~~~|\s{4}|[-*_]{3,}\s*$|==+ +==)",
    re.MULTILINE,
)
"""How a line begins whose breaks matter: items, rows, headings, code, rules."""
_BETWEEN = re.compile(r"\n(?:[ \t]*\n)+")
"""What stands between two paragraphs."""
_BARE_FENCE = re.compile(r"\s*(?:>\s*)*(`{3,}|~{3,})")


class _ShownLine(NamedTuple):
    text: str
    code: bool = False


def as_read(text: str) -> str:
    """Return a piece of Markdown or reStructuredText as it is read, its paragraphs on few lines.

    Lists, tables and code keep their lines, and code is between fences. Absolute addresses of
    links stay, in brackets after their labels. Plain text comes back with its words as they are.
    """
    lines = list(_shown_lines(with_fences(text).split("\n")))
    parts = []
    for code, group in groupby(lines, key=lambda line: line.code):
        part = "\n".join(line.text for line in group)
        parts.append(part if code else _apart(part, _prose_as_read(part)))
    return "\n".join(parts).strip()


def _prose_as_read(part: str) -> str:
    return on_few_lines(_INLINE.sub(_shown, _DEFINED.sub(": ", part)))


def on_few_lines(text: str) -> str:
    """Join the lines of each paragraph of prose; lists and tables keep theirs.

    What is indented below a list goes on with it, and keeps its lines as well.
    """
    parts: list[str] = []
    after_block = False
    for part in _BETWEEN.split(text.strip()):
        is_block = _BLOCK.search(part) is not None
        goes_on = after_block and part[:1].isspace()
        parts.append(part if is_block or goes_on else " ".join(part.split()))
        after_block |= is_block
    return "\n\n".join(parts)


def _apart(part: str, read: str) -> str:
    """Keep what is read of a part as far from the code around it as the part was."""
    first, last = part.partition("\n")[0], part.rpartition("\n")[2]
    before, after = ("\n" if read and not line.strip() else "" for line in (first, last))
    return f"{before}{read}{after}"


def with_fences(text: str) -> str:
    """Open or close the fence of code that was cut, as it would swallow what follows.

    A fence opens code if it names a language, or stands first or after a blank line.
    """
    lines = text.split("\n")
    matches = ((at, _BARE_FENCE.match(line)) for at, line in enumerate(lines))
    fences = [(at, mark[1]) for at, mark in matches if mark]
    if len(fences) % 2 == 0:
        return text
    (first, fence), (_, last) = fences[0], fences[-1]
    names_language = bool(lines[first].strip("`~> \t"))
    after_blank = first == 0 or not lines[first - 1].strip()
    return f"{text}\n{last}" if names_language or after_blank else f"{fence}\n{text}"


def _shown_lines(lines: Sequence[str]) -> Iterator[_ShownLine]:
    at = 0
    before = ""
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.match(line):
            end = _closing(lines, at, fence["fence"])
            yield from _fenced(lines, at, end, fence)
            at = end + 1
        elif opening := _DIRECTIVE.match(line):
            body, at = _indented(lines, at)
            yield from _directive(opening["name"], opening["rest"] or "", body)
        elif note := _note_at(lines, at):
            title, body, at = note
            yield from _titled(title, body)
        elif line.rstrip().endswith("::") and _indented(lines, at)[0]:
            body, at = _indented(lines, at)
            if led := line.rstrip().removesuffix(":").removesuffix(":").rstrip():
                yield _ShownLine(f"{led}:")
            yield from _code("", body)
        elif not _BLOCK.match(line) and shows_code(lines, at):
            body, at = _indented(lines, at)
            yield from (_ShownLine(line), _ShownLine(""), *_code("", body))
        elif _TARGET.match(line) or (_UNDERLINE.match(line) and before.strip()):
            at += 1
        elif _GRID.match(line):
            end = next((n for n in range(at, len(lines)) if not _GRID.match(lines[n])), len(lines))
            rows, at = lines[at:end], end
            yield from map(_ShownLine, _of_grid(rows))
        else:
            yield _ShownLine(_FIELD.sub(r"\1\2:", _NUMBERED.sub(r"\1-", line, count=1), count=1))
            at += 1
        before = line


def _note_at(lines: Sequence[str], at: int) -> tuple[str, list[str], int] | None:
    """Return title and text of the note, tab or footnote that begins there, and the next line."""
    if opening := _ALERT.match(lines[at]):
        end = at + 1
        while end < len(lines) and _QUOTED.match(lines[end]):
            end += 1
        body = [_QUOTED.sub("", line, count=1) for line in lines[at + 1 : end]]
        return opening["title"] or opening["name"].capitalize(), body, end
    if opening := _FOOTNOTE.match(lines[at]):
        body, end = _indented(lines, at)
        return "", [lines[at][opening.end() :], *body], end
    if opening := _NOTE.match(lines[at]) or _TAB.match(lines[at]):
        groups = opening.groupdict()
        title = groups["title"]
        return groups["name"].capitalize() if title is None else title, *_indented(lines, at)
    return None


def _closing(lines: Sequence[str], opening: int, fence: str) -> int:
    """Return the line that closes a fence, or the last one."""
    for at in range(opening + 1, len(lines)):
        if _closes(lines[at], fence):
            return at
    return len(lines) - 1


def _closes(line: str, fence: str) -> bool:
    return line.strip(" >\t").startswith(fence) and not line.strip(" >\t`~:")


def _fenced(
    lines: Sequence[str], start: int, end: int, fence: re.Match[str]
) -> Iterator[_ShownLine]:
    body = lines[start + 1 : end if _closes(lines[end], fence["fence"]) else end + 1]
    if fence["name"] is not None:
        if fence["name"] == "eval-rst":
            yield from _shown_lines(body)
        else:
            yield from _directive(fence["name"], fence["rest"].strip(), body)
    elif fence["fence"].startswith(":"):
        yield from _titled(fence["rest"].strip(" :").capitalize(), body)
    elif _closes(lines[end], fence["fence"]) and end > start:
        yield from (_ShownLine(line, code=True) for line in lines[start : end + 1])
    elif end > start:
        yield from (
            _ShownLine(line, code=True) for line in [*lines[start : end + 1], fence["fence"]]
        )


def _directive(name: str, rest: str, body: Sequence[str]) -> Iterator[_ShownLine]:
    while body and (_OPTION.match(body[0]) or not body[0].strip()):
        body = body[1:]
    short = name.rpartition(":")[2].lower()
    if name in _UNSEEN:
        return
    if name in _CODE:
        yield from _code(rest, body)
    elif name in _LABELS and name != "seealso":
        yield from _titled(f"{_LABELS[name]} {rest}".strip(), body)
    elif short in _NOTES:
        yield from _titled(_LABELS.get(short, short.capitalize()), [rest, *body] if rest else body)
    elif short in _TITLED:
        yield from _titled(rest, body)
    elif name.startswith("py:") or short in {"function", "class", "method", "option", "envvar"}:
        yield _ShownLine(f"`{rest}`")
        yield from _shown_lines(dedent("\n".join(body)).split("\n"))
    elif short in _ROWS_OF_LISTS and (rows := _of_list_table(body)):
        yield from map(_ShownLine, [*([rest, ""] if rest else []), *rows])
    elif short in _HOLDERS or (body and _DIRECTIVE.match(body[0])):
        yield from _titled("", body)
    else:
        yield from _code("", body)


def _of_grid(rows: Sequence[str]) -> list[str]:
    """Write a grid table of reStructuredText as one of Markdown; any other lines stay."""
    rules = [at for at, row in enumerate(rows) if _GRID_RULE.match(row)]
    if not rules:
        return list(rows)
    table: list[list[str]] = []
    head = next((at for at in rules if "=" in rows[at]), None)
    for above, below in pairwise([-1, *rules, len(rows)]):
        lines = [row.strip().strip("|").split("|") for row in rows[above + 1 : below]]
        if lines:
            table.append([" ".join(" ".join(cells).split()) for cells in zip(*lines, strict=False)])
        if below == head and table:
            table.append(["---"] * len(table[-1]))
    if len({len(row) for row in table}) > 1 or any("+" in cell for row in table for cell in row):
        return list(rows)  # Cells that span others.
    return [f"| {' | '.join(row)} |" for row in table]


def _of_list_table(body: Sequence[str]) -> list[str]:
    """Write the list that a directive makes a table of as a table; its first row is the head."""
    table: list[list[str]] = []
    for line in dedent("\n".join(body)).split("\n"):
        found = _LIST_ROW.match(line)
        if found is None or (not found["row"] and not table):
            return []
        if found["row"]:
            table.append([])
        if found["cell"]:
            table[-1].append(found["text"].strip())
        elif table[-1]:
            table[-1][-1] = f"{table[-1][-1]} {line.strip()}".strip()
    rows = [f"| {' | '.join(row)} |" for row in table]
    return [*rows[:1], f"|{' --- |' * len(table[0])}", *rows[1:]] if table else []


def _titled(title: str, body: Sequence[str]) -> Iterator[_ShownLine]:
    """Put the title of a note before its text."""
    if body and not body[0][:1].isspace():  # The note begins on the line of its directive.
        whole = "\n".join([body[0], dedent("\n".join(body[1:]))])
    else:
        whole = dedent("\n".join(body))
    lines = list(_shown_lines(whole.strip("\n").split("\n")))
    first = lines[0] if lines else _ShownLine("")
    if title and first.text.strip() and not (first.code or _BLOCK.match(first.text)):
        lines[0] = _ShownLine(f"{title}: {first.text.lstrip()}")
    elif title:
        lines.insert(0, _ShownLine(f"{title}:"))
    yield from lines


def _code(language: str, body: Sequence[str]) -> Iterator[_ShownLine]:
    code = dedent("\n".join(body)).strip("\n")
    if code.strip():
        mark = "~~~" if "```" in code else "```"
        for line in (f"{mark}{language}", *code.split("\n"), mark):
            yield _ShownLine(line, code=True)


def _indented(lines: Sequence[str], at: int) -> tuple[list[str], int]:
    """Return the lines that belong to one, indented more than it, and the number of the next."""
    depth = _depth(lines[at])
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _depth(lines[end]) > depth):
        end += 1
    after = end
    while end > at + 1 and not lines[end - 1].strip():
        end -= 1
    body = list(lines[at + 1 : end])
    return body, min(after, end)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _shown(match: re.Match[str]) -> str:
    """Return what a reader sees of markup within a line."""
    groups = match.groupdict()
    match match.lastgroup:
        case "rst_literal":
            seen = f"`{groups['rst_literal'][2:-2]}`"
        case "literal":
            seen = groups["literal"]
        case "role" | "myst":
            role = groups["role"] or groups["myst"]
            seen = _ROLE_TARGET.sub("", role).lstrip("~!") or role
        case "address":
            seen = _linked(groups["label"].strip(), groups["address"])
        case "target":
            seen = _linked(groups["text"], groups["target"])
        case "tag":
            seen = " " if groups["tag"].startswith("<br") else ""
        case _:
            seen = groups["reference"] or groups["named"] or groups["picture"] or ""
    return seen


def _linked(label: str, address: str) -> str:
    """Write a link: an address of the web stays, unless the label has it."""
    is_absolute = address.startswith(("http://", "https://"))
    return f"{label} ({address})" if is_absolute and address not in label else label
