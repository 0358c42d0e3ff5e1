"""A piece of documentation as its readers see it: without what only the tools that draw it read.

Notes, directives and roles of reStructuredText and of Markdown's dialects (MkDocs, MyST) become
words and blocks of code, links their labels, and code that was cut has both of its fences.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import groupby, pairwise
from textwrap import dedent
from typing import NamedTuple

from crag.text.markup import REFERENCES, reference_as_words
from crag.text.wholes import (
    CODE_DIRECTIVES,
    DOCTEST,
    FENCE,
    INDENTED,
    is_term,
    lines_of,
    shows_code,
    simple_table_end,
    underlines_title,
    without_blanks,
)

_FENCE = re.compile(
    r"\s*(?:>\s*)*(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<name>[\w:.+-]+)\})?(?P<rest>.*)$"
)
_NOTE = re.compile(r'\s*(?:!!!|\?\?\?\+?)\s+(?P<name>\w[\w -]*?)\s*(?:"(?P<title>[^"]*)")?\s*$')
_ALERT = re.compile(r"\s*>\s*\[!(?P<name>\w[\w-]*)\][+-]?[ \t]*(?P<title>.*?)\s*$")
"""A note as GitHub and Obsidian write it."""
_QUOTED = re.compile(r"\s*> ?")
_HEADING_IN_QUOTATION = re.compile(r"^(\s*>\s*)#{1,6}[ \t]+")
_TAB = re.compile(r'\s*===\+?\s+"(?P<title>[^"]*)"\s*$')
_DIRECTIVE = re.compile(
    r"\s*(?:[-*+][ \t]+)?\.\. (?:\|[^|]+\| )?(?P<name>[\w:.+-]+?)::(?:\s+(?P<rest>.*))?$"
)
_TARGET = re.compile(r"\s*\.\. _.*:|\s*\([\w-]+\)=\s*$|\s*::\s*$")
_OPTION = re.compile(r"\s*:[\w-]+:")
_UNDERLINE = re.compile(r"([=\-~^*+#])\1{2,}\s*$")
_NUMBERED = re.compile(r"^(\s*)#\.(?=\s)")
"""An item that Sphinx numbers."""
_TRANSITION = re.compile(r"[ \t]*([-*_])(?:[ \t]*\1){2,}[ \t]*")
"""A rule between parts of a page."""
_FOOTNOTE = re.compile(
    r"^\s*(?:\[\^[\w-]+\]:|\.\. \[(?:#?[\w.-]*|\*)\]|\[#[\w-]*\])(?:\s+(?=\S)|\s*$)"
)
_DEFINED = re.compile(r"(?<=[^\s:])[ \t]*\n(?:[ \t]*\n)? {0,3}:[ \t]+(?=\S)")
"""Between a term and what it means."""
_FIELD = re.compile(r"^(\s*):([a-zA-Z][\w -]{0,40}):(?=\s+\S)")
_FIELD_ALONE = re.compile(r"\s*:[a-zA-Z][\w -]{0,40}:\s*$")
_OPENS_LITERAL = re.compile(r"\s[\w)`*\"']+::\s*$")
"""The end of a sentence of reStructuredText that leads code in."""
_GRID, _GRID_RULE = re.compile(r"\s*[+|].*[+|]\s*$"), re.compile(r"\s*\+[-=+]+\+\s*$")
_HEAD_OF_CSV = re.compile(r"\s*:header:\s*(?P<values>\S.*)$")
_LIST_ROW = re.compile(r"(?P<row>\* )?(?P<cell>[ ]*- ?)?(?P<text>.*)$")
_UNSEEN = {"toctree", "contents", "include", "literalinclude", "raw", "index", "image", "figure",
           "currentmodule", "module", "py:module", "meta", "role", "program", "autosummary",
           "automodule"}  # fmt: skip
_TITLED = {"admonition", "topic", "rubric", "sidebar", "dropdown", "tab-item", "card", "details",
           "tab", "group-tab", "collapse", "grid-item-card", "table"}  # fmt: skip
"""Directives whose first line is a title, and not text."""
_SIGNATURES = re.compile(
    r"(?:py|c|cpp|js|http|std):[\w-]+|auto\w+|(?:[\w-]+:)?(?:function|class|method|attribute|data"
    r"|exception|decorator|describe|option|envvar|confval|setting)"
)
"""Directives whose first line is the name of what their text is about, as `autoclass` has it."""
_HOLDERS = {"tabs", "tab-set", "tab-set-code", "grid", "container", "compound", "only", "ifconfig",
            "rst-class", "hlist", "centered", "epigraph", "highlights", "pull-quote",
            "card-body", "versionremoved", "glossary", "grid-item", "div"}  # fmt: skip
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
_REFERENCE = "|".join(REFERENCES)
_TAGS = "a|abbr|b|br|cite|code|details|div|em|i|img|kbd|p|small|span|strong|sub|summary|sup|u"
_INLINE = re.compile(
    r"(?P<rst_literal>(?<!`)``(?!`)[^`]+``(?!`)"
    r"|(?<!`)(?!```[^`\n]*```)``(?!``)(?:[^`\n]|`(?!`)){1,200}`{2,3}(?!`))"
    rf"|(?::(?:std:)?(?:{_REFERENCE}):|\{{(?:{_REFERENCE})\}})`(?P<referred>[^`<>\n]{{1,300}})`"
    r"|:[a-zA-Z][\w:.+-]{0,60}:`(?P<role>[^`]{1,300})`"
    r"|\{[a-zA-Z][\w:.+-]{0,60}\}`(?P<myst>[^`]{1,300})`"
    r"|(?<![`\w])`(?P<label>[^`<]{1,300})<(?P<address>[^<>`]{1,500})>`__?"
    r"|(?<![`\w])`(?P<reference>[^`]{1,300})`__?(?!\w)"
    r"|(?P<literal>(?<!`)`[^`\n]+`(?!`))"
    r"|\[?!\[(?P<picture>[^\]\n]{0,200})\]\([^()\n]{0,1000}\)(?:\]\([^()\n]{0,1000}\))?"
    r"(?:\{[^{}\n]{0,300}\})?"
    r"|!\[(?P<badge>[^\]\n]{0,200})\]\[[^\]\n]{0,500}\]"
    r"|(?<![^\W_])(?<!\])\[(?P<text>(?:`[^`\n]{1,100}`|\\[\[\]]|\[[^\[\]\n`]{1,100}\]|[^\]\n`]"
    r"|`(?![^`\n]{1,100}`)|\n(?!\s*\n)){0,400})\]\((?P<target>\{%[^%]{0,300}%\}[^()\s]*"
    r"|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"\n]*\")?\)"
    r"|(?<![^\W_])(?<!\])\[(?P<named>(?:[^\]\n]|\n(?!\s*\n)){1,200})\]\[[^\]\n]{0,500}\](?!\[)"
    r"|(?P<footnote>\[\^(?:\d{1,3}|[A-Za-z]\w+(?:-\w{2,})*)\](?![*+?{(:])"
    r"| ?\[(?:#[\w-]*|\*|\d{1,3})\]_(?!\w))"
    r"|(?P<cited>\[[A-Za-z][\w.-]{0,60}\])_(?!\w)"
    r"|(?P<escaped>(?<=[\w.])\\_(?=\w)|(?<=\w)\\\.(?=\s|\Z)|(?<=[.!?;,)])\\(?=\n[ \t]*\n|\Z))"
    r"|(?P<comment><!--(?:(?!-->)[\s\S]){0,500}-->)"
    r"|\{%-? ?[a-z]\w* +\"(?P<argument>#?[\w-]{1,60})\"[^%\n]{0,100}%\}"
    r"|(?P<attributes>\{ ?(?::\s|#[\w-]|\.[a-z])[^{}\n]{0,300}\}|\{%[^%\n]{0,500}%\})"
    r"|(?P<icon>[ \t]?:(?:fontawesome|material|octicons|simple)-[\w-]{1,60}:)"
    r"|(?P<entity>&(?:[a-zA-Z]\w{1,30}|#\d{1,6}|#[xX][0-9a-fA-F]{1,6});)"
    rf"|(?P<tag></?(?:{_TAGS})(?:\s[^<>\n]{{0,500}})?/?>)",
)
_MARKS = frozenset("*_`[]#|~\\")
"""Characters that an entity stands for so that they are no markup."""
_LANGUAGE_OF_CODE = re.compile(r"\A`#!\w+ +(?=\S)")
"""How code within a line begins that pymdownx colours."""
_ROLE_TARGET = re.compile(r"\s*<[^<>]*>\s*\Z")
_BLOCK = re.compile(
    r"^\s*(?:[-*+•]\s|[|>]|#{1,6}\s|\d{1,3}[.)]\s|```|~~~|\s{4}|[-*_]{3,}\s*$|==+ +==)",
    re.MULTILINE,
)
"""How a line begins whose breaks matter: items, rows, headings, code, rules."""
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)")
_INDENTED_TEXT = re.compile(r"(?: {4,}(?:[^\x00-\x7f]|[A-Z][a-z])[^`=(){}<>;/\\|_\n]*(?:\n|\Z))+")
"""Words that HTML has left with its indentation: they look like no code."""
_HANGING = re.compile(r"[A-Z][^\n=]*[^\s:({\[=]\n([ \t]{4,})[a-z][^\n=]*(?:\n\1\S[^\n=]*)*[.!?)]")
"""Sentences that began within the first line of an indented paragraph, the rest of which is."""
_TERM = r"(?![^\n]*: )\S(?:[^\n]{0,60}[^\s.!?:;,])?"
_EXPLANATION = r"(?:[ \t]+\S[^\n]*(?:\n|\Z))+"
_DEFINITION = re.compile(rf"({_TERM})\n({_EXPLANATION})")
_DEFINITIONS = re.compile(rf"(?:{_TERM}\n{_EXPLANATION})+")
"""Terms, each with what it means indented below it."""
_ENDS_OF_SENTENCES = (".", "!", "?", "。")
_ENTRIES = re.compile(
    r"(?:(?:\S{1,30}(?: \S{1,30}){0,3}|\S{31,120})(?<![.,;:!?])[ \t]*(?:\n|\Z)){3,}"
)
"""A list without marks, such as requirements: short lines that end as no sentence does."""
_SENTENCES = r"(?:(?!\n[ \t]*\n)[^*`])*?[.!?]"
_CLOSED_ONLY = re.compile(rf"\A({_SENTENCES})\*{{1,3}}(?=\n[ \t]*\n|\Z)")
_OPENED_ONLY = re.compile(rf"(\A|\n\n)\*{{1,3}}(?=[A-Z])({_SENTENCES})\Z")
"""A first or last paragraph that has one of the two marks of what it emphasises."""
_SAID = r"(?:`[^`\n]*`|(?<=\w)_(?=\w)|[^`_\n]|\n(?!\n))*"
_CLOSED_BY_LINE = re.compile(rf"\A({_SAID}[.!?])_(?=\n\n|\Z)")
_OPENED_BY_LINE = re.compile(rf"(\A|\n\n)_(?=[A-Z])({_SAID})\Z")
"""The same with low lines, which names of code have within them."""
_BREAK, _HARD_BREAK = re.compile(r"(?:(?<! ) {2,}|(?<!\\)\\)\n(?=.)"), "  \n"
"""The end of a line that is kept, as that of an address."""
_NAMES = re.compile(r"(?:`[^`\n]+`\s*)+")
"""What is shown of directives that document code where that code is not there."""
_BETWEEN = re.compile(r"\n(?:[ \t]*\n)+")
"""What stands between two paragraphs."""


class _ShownLine(NamedTuple):
    text: str
    code: bool = False


def as_read(text: str) -> str:
    """Return a piece of Markdown or reStructuredText as it is read, its paragraphs on few lines.

    Lists, tables and code keep their lines, and code is between fences. Absolute addresses of
    links stay, in brackets after their labels. Plain text comes back with its words as they are.
    """
    lines = list(_shown_lines(with_fences(_with_first_mark(text)).split("\n")))
    parts = []
    after_block = False
    for code, group in groupby(lines, key=lambda line: line.code):
        part = "\n".join(line.text for line in group)
        parts.append(part if code else _apart(part, _prose_as_read(part, after_block)))
        after_block |= not code and _BLOCK.search(part) is not None
    return _with_emphasis_in_pairs(_without_rules_around("\n".join(parts).strip()))


def only_names(text: str) -> bool:
    """Return whether a piece of reStructuredText has titles alone, or no more than names of code.

    What is said of these stands in the code itself. Headings of Markdown may be whole sentences.
    """
    lines = [text[line.start : line.end] for line in lines_of(text) if line.kind != "heading"]
    said = "\n".join(lines).strip()
    if not said:
        return not text.lstrip().startswith("#")
    return said.startswith((".. ", "```{")) and _NAMES.fullmatch(as_read(said)) is not None


def _with_first_mark(text: str) -> str:
    """Mark the first line of a text that is all of one quotation, where it begins within a line."""
    first, *others = text.split("\n")
    is_ended = (
        first.endswith((":", *_ENDS_OF_SENTENCES)) or _QUOTED.match(first) or FENCE.match(first)
    )
    goes_on = not is_ended and "".join(others[:1]).strip()
    is_quoted = goes_on and all(_QUOTED.match(line) for line in others if line.strip())
    is_else = any(DOCTEST.match(line) or _ALERT.match(line) for line in others)
    return f"> {text}" if is_quoted and not is_else else text


def _with_emphasis_in_pairs(text: str) -> str:
    """Leave out the mark that began or ended the emphasis of sentences, where these were cut."""
    for closed, opened in ((_CLOSED_ONLY, _OPENED_ONLY), (_CLOSED_BY_LINE, _OPENED_BY_LINE)):
        text = opened.sub(r"\1\2", closed.sub(r"\1", text, count=1), count=1)
    return text


def _without_rules_around(text: str) -> str:
    """Leave out rules between what is quoted and what is not."""
    rows = text.split("\n")
    while rows and (not rows[-1].strip("> \t") or _TRANSITION.fullmatch(rows[-1])):
        rows.pop()
    is_read = (row.strip("> \t") and not _TRANSITION.fullmatch(row) for row in rows)
    return "\n".join(rows[next((at for at, seen in enumerate(is_read) if seen), 0) :])


def _prose_as_read(part: str, after_block: bool) -> str:
    return on_few_lines(_INLINE.sub(_shown, _DEFINED.sub(": ", part)), after_block=after_block)


def on_few_lines(text: str, *, after_block: bool = False) -> str:
    """Join the lines of each paragraph of prose; lists and tables keep theirs.

    What is indented below a list, which may stand `after_block`, before the text, goes on with it,
    and keeps its lines as well.
    """
    parts: list[str] = []
    text = text[without_blanks(text, 0, len(text))[0] :].rstrip() if after_block else text.strip()
    for part in _BETWEEN.split(text):
        if not after_block and _INDENTED_TEXT.fullmatch(part):
            parts.append(_HARD_BREAK.join(map(str.strip, part.split("\n"))))
            continue
        if not after_block and _HANGING.fullmatch(part):
            parts.append(" ".join(part.split()))
            continue
        is_block = _BLOCK.search(part) is not None and not _are_terms_with_sentences(part)
        goes_on = after_block and part[:1].isspace()
        parts.append(_with_list_at_text(part) if is_block or goes_on else _paragraph(part))
        after_block |= is_block
    return "\n\n".join(parts)


def _paragraph(part: str) -> str:
    """Join lines that were wrapped; terms, entries, and what a hard break ends have their own."""
    if definitions := _definitions(part):
        # Verses and code are indented as well.
        between = ": " if _are_sentences(definitions) else "\n"
        return "\n".join(f"{term}{between}{says}" for term, says in definitions)
    if _ENTRIES.fullmatch(part):
        return part
    return _HARD_BREAK.join(" ".join(line.split()) for line in _BREAK.split(part))


def _with_list_at_text(part: str) -> str:
    """Move a list to the text right above it: Markdown has none that is indented as code is."""
    lines = part.split("\n")
    for at, (above, line) in enumerate(pairwise(lines), 1):
        opening = _ITEM.match(above)
        deeper = _depth(line) - (opening.end() if opening else _depth(above))
        if _ITEM.match(line) and deeper >= INDENTED:
            deep = _depth(line)
            moved = [row[deeper:] if _depth(row) >= deep else row for row in lines[at:]]
            return "\n".join([*lines[:at], *moved])
    return part


def _definitions(part: str) -> list[tuple[str, str]]:
    """Return terms with what is indented below each, if the lines of a part are nothing else."""
    if not (_DEFINITIONS.fullmatch(part) and is_term(part.split("\n"), 0)):
        return []
    return [(term, " ".join(says.split())) for term, says in _DEFINITION.findall(part)]


def _are_sentences(definitions: Sequence[tuple[str, str]]) -> bool:
    return all(says.endswith(_ENDS_OF_SENTENCES) for _, says in definitions)


def _are_terms_with_sentences(part: str) -> bool:
    """Return whether only the indentation of what terms mean makes a part look like a block."""
    definitions = _definitions(part)
    is_plain = not _BLOCK.search("\n".join(line.strip() for line in part.split("\n")))
    return bool(definitions) and is_plain and _are_sentences(definitions)


def _apart(part: str, read: str) -> str:
    """Keep what is read of a part as far from the code around it as the part was."""
    first, last = part.partition("\n")[0], part.rpartition("\n")[2]
    before, after = ("\n" if read and not line.strip() else "" for line in (first, last))
    return f"{before}{read}{after}"


def with_fences(text: str) -> str:
    """Open or close the fence of code that was cut, as it would swallow what follows.

    A fence opens code if it names a language, or stands first or after a blank line; but one that
    ends the text, or stands first and before one that names a language, closed what is left out.
    """
    lines = text.split("\n")
    matches = ((at, FENCE.match(line)) for at, line in enumerate(lines))
    fences = [(at, mark[0]) for at, mark in matches if mark and not underlines_title(lines, at)]
    if len(fences) % 2 == 0:
        return text
    (first, fence), (_, last) = fences[0], fences[-1]
    names_language = bool(lines[first].strip("`~> \t"))
    after_blank = first == 0 or not lines[first - 1].strip()
    next_names = len(fences) > 1 and bool(lines[fences[1][0]].strip("`~> \t"))
    is_end = not "".join(lines[first + 1 :]).strip()
    if not names_language and after_blank and (is_end or (first == 0 and next_names)):
        return "\n".join([*lines[:first], *lines[first + 1 :]])
    return f"{text}\n{last}" if names_language or after_blank else f"{fence}\n{text}"


def _shown_lines(lines: Sequence[str]) -> Iterator[_ShownLine]:
    at = margin = 0
    while at < len(lines):
        line = lines[at]
        item = _ITEM.match(line)
        if line.strip():
            margin = item.end() if item else min(margin, _depth(line))
        if (fence := _FENCE.match(line)) and not underlines_title(lines, at):
            end = _closing(lines, at, fence["fence"])
            yield from _fenced(lines, at, end, fence)
            at = end + 1
        elif opening := _DIRECTIVE.match(line):
            body, at = _indented(lines, at)
            directive = _directive(opening["name"], opening["rest"] or "", body)
            yield from _moved(directive, 0 if item else margin)
        elif note := _note_at(lines, at):
            title, body, at = note
            yield from _titled(title, body)
        elif line.rstrip().endswith("::") and _indented(lines, at)[0]:
            body, at = _indented(lines, at)
            yield from _led_in(line, body, margin)
        elif not _BLOCK.match(line) and shows_code(lines, at):
            body, at = _indented(lines, at)
            yield from (_ShownLine(line), _ShownLine(""), *_code("", body))
        elif _TARGET.match(line) or _is_rule_of_title(lines, at):
            at += 1
        elif block := _block_at(lines, at):
            shown, at = block
            yield from shown
        else:
            yield from _plain_line(lines, at)
            at += 1


def _moved(lines: Iterable[_ShownLine], margin: int) -> Iterator[_ShownLine]:
    """Move lines to the text of the item that holds them."""
    for line in lines:
        yield line._replace(text=" " * margin + line.text if line.text else "")


def _led_in(line: str, body: Sequence[str], margin: int) -> Iterator[_ShownLine]:
    """Yield a line that ends with two colons, and the code that it leads in.

    What stands right below the line is no code, nor is it to docutils: a term of AsciiDoc means it.
    """
    if led := line.rstrip().removesuffix(":").removesuffix(":").rstrip():
        yield _ShownLine(f"{led}:")
    if body[0].strip():
        yield from _shown_lines(dedent("\n".join(body)).split("\n"))
    else:
        yield from _moved(_code("", body), margin)


def _plain_line(lines: Sequence[str], at: int) -> Iterator[_ShownLine]:
    """Yield a line that is no block; a field is a paragraph of its own."""
    line, ends = lines[at], not "".join(lines[at + 1 : at + 2]).strip()
    if _FIELD.match(line) and at and lines[at - 1].strip():
        yield _ShownLine("")
    if _FIELD_ALONE.match(line) and _indented(lines, at)[0]:
        line = line.replace(":", "", 1)
    if ends and _OPENS_LITERAL.search(line):
        line = line.rstrip()[:-1]
    line = _HEADING_IN_QUOTATION.sub(r"\1", line)
    yield _ShownLine(_FIELD.sub(r"\1\2:", _NUMBERED.sub(r"\1-", line, count=1), count=1))


def _block_at(lines: Sequence[str], at: int) -> tuple[list[_ShownLine], int] | None:
    """Return what is shown of the table or the doctest that begins there, and the next line."""
    if DOCTEST.match(lines[at]):
        end = next((n for n in range(at, len(lines)) if not lines[n].strip()), len(lines))
        return list(_code("", lines[at:end])), end
    if _GRID.match(lines[at]):
        end = next((n for n in range(at, len(lines)) if not _GRID.match(lines[n])), len(lines))
        return list(map(_ShownLine, _of_grid(lines[at:end]))), end
    if (last := simple_table_end(lines, at)) > at:
        return list(map(_ShownLine, _of_simple(lines[at : last + 1]))), last + 1
    return None


def _is_rule_of_title(lines: Sequence[str], at: int) -> bool:
    """Return whether a rule stands below a text, or above a title that has one below it too.

    One of quotation marks, dots and the like, which is as often something else, is as long as its
    title.
    """
    above = lines[at - 1] if at else ""
    title, below = [*lines[at + 1 : at + 3], "", ""][:2]
    is_between = bool(title.strip()) and below.rstrip() == lines[at].rstrip()
    if _UNDERLINE.match(lines[at]):
        return bool(above.strip()) or is_between
    return underlines_title(lines, at) or (is_between and underlines_title(lines, at + 2))


def _note_at(lines: Sequence[str], at: int) -> tuple[str, list[str], int] | None:
    """Return title and text of the note, tab or footnote that begins there, and the next line."""
    if opening := _ALERT.match(lines[at]):
        end = at + 1
        while end < len(lines) and _QUOTED.match(lines[end]):
            end += 1
        body = [_QUOTED.sub("", line, count=1) for line in lines[at + 1 : end]]
        if not any(map(str.strip, body)):  # Then its title is all that it says.
            return "", [opening["title"]], end
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
            yield from _rest_of_directive(body)
        else:
            yield from _directive(fence["name"], fence["rest"].strip(), body)
    elif fence["fence"].startswith(":"):
        yield from _titled(fence["rest"].strip(" :").capitalize(), body)
    elif end > start:
        opening = lines[start][: fence.end("fence")]  # With its margin, as within an item.
        last = lines[end] if _closes(lines[end], fence["fence"]) else opening
        code = body[_blank_lines(body) : len(body) - _blank_lines(body[::-1])]
        yield from (_ShownLine(line, code=True) for line in [lines[start], *code, last])


def _blank_lines(lines: Sequence[str]) -> int:
    """Count the blank lines that come first."""
    return next((at for at, line in enumerate(lines) if line.strip()), 0)


def _rest_of_directive(lines: Sequence[str]) -> Iterator[_ShownLine]:
    """Yield what is indented at first, as the directive is that held it, and what follows."""
    first = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    end = next((at for at in range(first, len(lines)) if lines[at][:1].strip()), len(lines))
    opening, gap, rest = "\n".join(lines[:end]).partition("\n\n")
    is_code = end > first and not opening.rstrip().endswith(_ENDS_OF_SENTENCES)
    if is_code and not _DIRECTIVE.match(lines[first]):
        yield from [*_code("", lines[:end]), _ShownLine("")]
    else:
        yield from _shown_lines(f"{dedent(opening)}{gap}{dedent(rest)}".split("\n"))
    yield from _shown_lines(lines[end:])


def _directive(name: str, rest: str, body: Sequence[str]) -> Iterator[_ShownLine]:
    whole = body
    while body and (_OPTION.match(body[0]) or not body[0].strip()):
        body = body[1:]
    short = name.rpartition(":")[2].lower()
    if name in _UNSEEN:
        return
    if name in CODE_DIRECTIVES:
        yield from _code(rest, body)
    elif name in _LABELS and name != "seealso":
        yield from _titled(f"{_LABELS[name]} {rest}".strip(), body, stands_alone=True)
    elif short in _NOTES:
        yield from _titled(_LABELS.get(short, short.capitalize()), [rest, *body] if rest else body)
    elif short in _TITLED:
        yield from _titled(rest, body, stands_alone=short == "rubric")
    elif _SIGNATURES.fullmatch(name):
        yield from [_ShownLine(f"`{rest}`"), *([] if body else [_ShownLine("")])]
        yield from _shown_lines(dedent("\n".join(body)).split("\n"))
    elif rows := _rows_of(short, whole, body):
        yield from map(_ShownLine, [*([rest, ""] if rest else []), *rows])
    elif short in _HOLDERS or any(map(_DIRECTIVE.match, body)):
        yield from _titled("", body)
    else:
        yield from _code("", body)


def _rows_of(name: str, whole: Sequence[str], body: Sequence[str]) -> list[str]:
    """Return the rows of a directive that draws a table, whose options `whole` has too."""
    if name == "csv-table":
        return _of_csv(whole)
    return _of_list_table(body) if name in _ROWS_OF_LISTS else []


def _of_csv(body: Sequence[str]) -> list[str]:
    """Write comma-separated values as a table of Markdown; an option has its head."""
    options = [match for line in body if (match := _HEAD_OF_CSV.match(line))]
    values = [line.strip() for line in body if line.strip() and not _OPTION.match(line)]
    head = [match["values"] for match in options]
    try:
        table = list(csv.reader([*head, *values], skipinitialspace=True))
    except csv.Error:
        return list(body)
    rows = [f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in table]
    if not values:
        return []
    return [*rows[:1], f"|{' --- |' * len(table[0])}", *rows[1:]]


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


def _of_simple(rows: Sequence[str]) -> list[str]:
    """Write a simple table of reStructuredText as one of Markdown; any other lines stay."""
    starts = [column.start() for column in re.finditer("=+", rows[0])]
    table: list[list[str]] = []
    is_first = True
    for number, row in enumerate(rows[1:], 1):
        if set(row) <= {"=", " "}:
            if row.strip() and number < len(rows) - 1:
                table.append(["---"] * len(starts))
                is_first = True
            continue
        cells = re.split(r"[ \t]{2,}", row.strip())
        if len(cells) != len(starts):  # One is empty, or the row goes on.
            if any(row[start - 1 : start].strip() for start in starts[1:]):
                return list(rows)  # A cell that spans others, or one with a role that is gone.
            cells = [row[a:b].strip() for a, b in pairwise([*starts, len(row) + 1])]
        if cells[0] or is_first:
            table.append(cells)
            is_first = False
        else:
            table[-1] = [f"{old} {new}".strip() for old, new in zip(table[-1], cells, strict=True)]
    return [f"| {' | '.join(cells)} |" for cells in table]


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
            table[-1].append(found["text"].strip().removeprefix("| "))
        elif table[-1]:
            more = line.strip()
            between = "," if more.startswith("| ") else ""  # Lines that keep their breaks.
            table[-1][-1] = f"{table[-1][-1]}{between} {more.removeprefix('| ')}".strip()
    rows = [f"| {' | '.join(row)} |" for row in table]
    return [*rows[:1], f"|{' --- |' * len(table[0])}", *rows[1:]] if table else []


def _titled(title: str, body: Sequence[str], *, stands_alone: bool = False) -> Iterator[_ShownLine]:
    """Put the title of a note before its text; one without text is left out, or `stands_alone`."""
    if body and not body[0][:1].isspace():  # The note begins on the line of its directive.
        whole = "\n".join([body[0], dedent("\n".join(body[1:]))])
    else:
        whole = dedent("\n".join(body))
    lines = list(_shown_lines(whole.strip("\n").split("\n")))
    if not any(line.text.strip() for line in lines):
        lines, title = [_ShownLine(title)] if stands_alone else [], ""
    first = lines[0] if lines else _ShownLine("")
    lead = title if title.endswith(("?", "!", ".", ":")) else f"{title}:"
    if title and first.text.strip() and not (first.code or _BLOCK.match(first.text)):
        lines[0] = _ShownLine(f"{lead} {first.text.lstrip()}")
    elif title:
        lines.insert(0, _ShownLine(lead))
    yield from lines


def _code(language: str, body: Sequence[str]) -> Iterator[_ShownLine]:
    code = dedent("\n".join(body)).strip("\n")
    if code.strip():
        mark = "~~~" if "```" in code else "```"
        for line in (f"{mark}{language}", *code.split("\n"), mark):
            yield _ShownLine(line, code=True)


def _indented(lines: Sequence[str], at: int) -> tuple[list[str], int]:
    """Return the lines that belong to one, indented more than it, and the number of the next.

    Below the first line of an item, what is not indented more than its text goes on with that.
    """
    below = next((line for line in lines[at + 1 :] if line.strip()), "")
    item = _ITEM.match(lines[at])
    depth = item.end() if item and item.end() < _depth(below) else _depth(lines[at])
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _depth(lines[end]) > depth):
        end += 1
    while end > at + 1 and not lines[end - 1].strip():
        end -= 1
    return list(lines[at + 1 : end]), end


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _shown(match: re.Match[str]) -> str:
    """Return what a reader sees of markup within a line."""
    groups = match.groupdict()
    match match.lastgroup:
        case "rst_literal":
            code = groups["rst_literal"][2:-2]
            seen = f"`` {code} ``" if "`" in code else f"`{code}`"
        case "literal":
            seen = _LANGUAGE_OF_CODE.sub("`", groups["literal"])
        case "referred" | "role" | "myst":
            seen = _of_role(groups["referred"] or "", groups["role"] or groups["myst"])
        case "address":
            seen = _linked(groups["label"].strip(), groups["address"])
        case "target":
            seen = _linked(_INLINE.sub(_shown, groups["text"]), groups["target"])
        case "named":
            seen = _INLINE.sub(_shown, groups["named"])
        case "entity":
            shown = re.sub(r"\s", " ", unescape(groups["entity"]))
            is_whole = not shown.endswith(";")  # Else it only begins with the name of one.
            is_seen = is_whole and shown.isprintable() and shown not in _MARKS
            seen = shown if is_seen else groups["entity"]
        case "escaped":
            seen = groups["escaped"][1:]
        case "tag":
            seen = " " if groups["tag"].startswith("<br") else ""
        case _:
            shown_alone = ("reference", "picture", "badge", "cited", "argument")
            seen = next((groups[name] for name in shown_alone if groups[name]), "")
    return seen


def _of_role(target: str, text: str) -> str:
    return reference_as_words(target) if target else _ROLE_TARGET.sub("", text).lstrip("~!") or text


def _linked(label: str, address: str) -> str:
    """Write a link: an address of the web stays, unless the label has it."""
    is_absolute = address.startswith(("http://", "https://"))
    return f"{label} ({address})" if is_absolute and address not in label else label
