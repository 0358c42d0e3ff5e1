"""Citation marks: how an answer says which strips a sentence rests on, as ``[3]`` or ``[1, 2]``.

Everything that writes, reads, changes or removes marks uses this module, so their form is known
here, and in `serve/static/citations.js`, which a test compares with it.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

_NUMBERS = r"\d{1,4}(?:\s*[,;]\s*\d{1,4})*"
PATTERN = rf"\[{_NUMBERS}\]"
"""A mark, as a part of a regular expression without groups."""
SINGLE = r"\[\d{1,4}\]"
"""A mark of one number, also as a part of a regular expression."""
# White space is matched from its beginning only: from each of its places it would take quadratic
# time.
_MARK = re.compile(rf"(?:(?<!\s)\s+)?({PATTERN})")
_NUMBER = re.compile(r"\d+")
_SIGN = r"(?:\s?(?:numbers?|n[°º]|no\.|nr\.|№|#))?[\s:=.]{0,3}[\"“]?"
_NAME = (
    r"(?:(?:see|cf\.|siehe|vgl\.|voir|véase)\s)?(?:passages?|sources?|doc(?:ument)?s?|excerpts?"
    r"|ref(?:erence)?s?|citations?|cite|chunks?|snippets?|quellen?|dokumente?|textstellen?"
    r"|extraits?|fuentes?|pasajes?|documentos?|font[ei]|passaggi?o?|bron|źródło|источники?|документы?"
    rf"|来源|來源|文档|文檔|资料|資料|段落|引用|参考|出典|文書|출처|문서){_SIGN}"
)
_SHORT = rf"(?:notes?|context|result|id|no\.|nr\.|№|#){_SIGN}"
"""Names that stand in square brackets alone."""
_RANGE = r"\d{1,4}(?:\s?[-–]\s?\d{1,3})?"
_SEVERAL = rf"{_RANGE}(?:\s*(?:[,;，、&]|and|und|et|y|e)\s*(?:{_NAME})?{_RANGE})*"
_OTHER = re.compile(
    rf"\\?\^?[\[［【]{{1,2}}\^?(?:{_NAME}|{_SHORT})?(?P<square>{_SEVERAL})[\"”]?"
    r"(?:(?:\s?[:†]|\s[-–])[^\[\]【】\n]{1,60})?"
    r"\^?\\?[\]］】]{1,2}\^?(?:\((?:#[^()\s]{0,300})?\))?"
    rf"|[(（]{_NAME}(?P<round>{_SEVERAL})[)）]"
    r"|<(?P<tag>sup|cite|citation|ref|source|source_id|doc)\b[^<>\n]{0,40}>\s?"
    rf"(?:<a\b[^<>\n]{{0,300}}>)?\[?(?P<raised>{_SEVERAL})\]?(?:</a>)?\s?</(?P=tag)>"
    r"|<(?:cite|citation|ref|source|doc)\s[^<>\d\n]{0,20}(?P<empty>\d{1,4})[\"']?\s?/>"
    rf"|</co:\s?(?P<span>{_SEVERAL})>|\$\^\{{\[?(?P<power>{_SEVERAL})\]?\}}\$"
    r"|(?P<opening>\[cite_start\]|<co(?::\s?\d+)?>)"
    r"|[⁽\[]?(?P<bare0>(?:(?<=[⁽\[])|(?<=[^\W\d_]{3}))[⁰¹²³⁴-⁹]{1,2})[⁾\]]?"
    rf"|(?:(?<=\S)\s\(|（)(?P<bare1>{_SEVERAL})[)）](?=[.,;:!?。，；！？]|\s*(?:\n|\Z))"
    r"|(?:(?<=\S)\s\{|\[[A-Z])(?P<bare2>\d{1,2})[}\]](?=[.,;:!?]|\s*(?:\n|\Z))",
    re.IGNORECASE,
)
"""Marks as models write them who were not trained to write ours: in square brackets of any kind, a
name in round ones, in tags. Those called bare may be something else: they are marks if no other
stands in the text."""
_OURS = re.compile(PATTERN, re.ASCII)
_RANGES = re.compile(r"(\d{1,4})(?:\s?[-–]\s?(\d{1,3}))?")
_LONGEST_RANGE = 20


class Mark(NamedTuple):
    """One mark in a text."""

    start: int
    """Of the mark, or of the white space before it."""
    bracket: int
    end: int
    numbers: list[int]


def as_mark(*numbers: int) -> str:
    """Write the mark that cites strips, or passages, by their numbers."""
    return f"[{', '.join(map(str, numbers))}]"


def in_our_format(text: str, known: Collection[int] | None = None) -> str:
    """Write marks of other formats, such as ``[Passage 4]``, ``【4†L1】`` or ``[^4]``, as ``[4]``.

    A number in round brackets is a mark only if it is `known` and the text has no other marks.
    """
    has_marks = _MARK.search(text) is not None

    def written(found: re.Match[str]) -> str:
        kind = found.lastgroup or ""
        plain = unicodedata.normalize("NFKC", found[0] if kind == "opening" else found[kind])
        ranges = [(int(first), int(last or first)) for first, last in _RANGES.findall(plain)]
        numbers = list(dict.fromkeys(one for a, b in ranges for one in range(a, b + 1)))
        is_unknown = known is None or has_marks or not {*numbers} <= {*known}
        is_range = all(first <= last < first + _LONGEST_RANGE for first, last in ranges)
        if not is_range or (kind.startswith("bare") and is_unknown) or _OURS.fullmatch(found[0]):
            return found[0]
        return f"{' ' * (found[0][0] == ' ')}{as_mark(*numbers)}" if numbers else ""

    return _OTHER.sub(written, text)


def marks_of(text: str) -> Iterator[Mark]:
    """Find the marks of a text from left to right."""
    for match in _MARK.finditer(text):
        yield Mark(match.start(), match.start(1), match.end(), _numbers(match[1]))


def with_numbers(text: str, change: Callable[[Sequence[int]], Sequence[int]]) -> str:
    """Replace the numbers of each mark by those that `change` returns for them.

    A mark left without numbers is removed, together with the white space before it.
    """

    def replace(match: re.Match[str]) -> str:
        changed = change(_numbers(match[1]))
        return match[0].replace(match[1], as_mark(*changed)) if changed else ""

    return _MARK.sub(replace, text)


def without_marks(text: str) -> str:
    """Remove the marks of a text, together with the white space before each."""
    return with_numbers(text, lambda _: ())


def _numbers(mark: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(mark)]
