"""From the segments of the best hypothesis to an answer with citations."""

from collections.abc import Sequence
from typing import NamedTuple

from crag.reflection.cleaning import cleaned, first_block, released_answer, spaced
from crag.reflection.hypotheses import Segment
from crag.reflection.options import Options
from crag.reflection.records import Flag
from crag.reflection.tokens import CONTINUE

_ENDS = ".!?…。！？"


class Assembled(NamedTuple):
    """An answer, and which passages its numbers mean."""

    answer: str
    cited: list[int]
    """``[n]`` is the passage ``cited[n - 1]``."""
    flags: list[Flag]


def assemble(segments: Sequence[Segment], options: Options) -> Assembled:
    """Join segments to an answer.

    ``[n]`` stands before the full stop of a segment; a passage that is cited again keeps its
    number. A segment that repeats an earlier one is left out. One that called its passage
    irrelevant, or itself unsupported, cites nothing.
    """
    if "cut_at_blank_line" in options.compat and all(s.passage is None for s in segments):
        blocks = [first_block(segment.text) for segment in segments]
        segments = [
            segment._replace(text=block, shown=cleaned(block))
            for segment, block in zip(segments, blocks, strict=True)
        ]
    if options.ignore_no_support:
        kept = [segment for segment in segments if not segment.is_unsupported]
    else:
        kept = list(segments)
    flags: list[Flag] = ["all_removed"] if segments and not kept else []
    if "released_citations" in options.compat:
        return Assembled(*_released(segments, kept), flags)
    spoken = [segment for segment in kept if segment.shown]
    unique = _first_of_each(spoken)
    if len(unique) < len(spoken):
        flags.append("repeated_segment")
    cited: list[int] = []
    parts = [with_number(segment.shown, _number(segment, cited)) for segment in unique]
    return Assembled(" ".join(parts), cited, flags)


def released_biography(segments: Sequence[Segment]) -> str:
    """Join segments as the released program does for FactScore: no citations."""
    text = " ".join(released_answer(segment.text).replace(CONTINUE, "") for segment in segments)
    return spaced(text.removeprefix(" "))


def _first_of_each(segments: Sequence[Segment]) -> list[Segment]:
    first: dict[str, Segment] = {}
    for segment in segments:
        first.setdefault(segment.shown, segment)
    return list(first.values())


def _number(segment: Segment, cited: list[int]) -> int | None:
    """Return the number of the segment's passage in `cited`, where it is added if it is new."""
    if segment.passage is None or segment.is_irrelevant or segment.is_unsupported:
        return None
    if segment.passage not in cited:
        cited.append(segment.passage)
    return cited.index(segment.passage) + 1


def with_number(text: str, number: int | None) -> str:
    """Write ``[number]`` before the end of a sentence; None leaves it as it is."""
    if number is None:
        return text
    body = text.rstrip(_ENDS)
    return f"{body} [{number}]{text[len(body) :]}"


def _released(segments: Sequence[Segment], kept: Sequence[Segment]) -> tuple[str, list[int]]:
    """Number by place among all segments; skipped ones leave the list of passages shorter."""
    answer, seen, cited = "", set[str](), list[int]()
    for number, segment in enumerate(segments, start=1):
        text = released_answer(segment.text)
        if segment not in kept or not text or text in seen:
            continue
        seen.add(text)
        if segment.passage is None:
            answer += f"{text} "
            continue
        answer += f"{text[:-1]} [{number}]. "
        cited.append(segment.passage)
    answer = spaced(answer).replace(f".{CONTINUE}", " [1]. ")
    return answer.replace(". [1] ", " [1]. ").strip(), cited
