"""The released long form of Self-RAG, faults included: a beam search over whole continuations."""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from crag.graph.reflect import Algorithms
from crag.papers.released.reflection import (
    UNSEEN,
    first_block,
    released_choice,
    released_segment,
    released_short_form,
)
from crag.parts import Candidate, Continuation, Probabilities, SegmentLimits
from crag.reflection.beam import beam_round
from crag.reflection.driver import Asked, Driver, Offered
from crag.reflection.scoring import critique_of, seen
from crag.reflection_tokens import (
    CONTINUE,
    NO_RETRIEVAL,
    NO_SUPPORT,
    RELEVANCE,
    RETRIEVAL,
    RETRIEVE,
)
from crag.state import Critique, Flag, Reflection

_RETRIEVE = re.compile("|".join(map(re.escape, RETRIEVE)))
_MISSING_SPACE = re.compile(r"(?<=\w)([.!?])(?=\w)")


class _Path(NamedTuple):
    """The beginning of an answer."""

    before: str
    """What the program takes for the text before the last segment."""
    last: str
    critiques: tuple[Critique, ...]
    goes_on: bool

    @property
    def score(self) -> float:
        """The product of the scores of its segments."""
        return math.prod(critique["total"] for critique in self.critiques)


def released_long_form(asked: Asked, driver: Driver) -> Reflection:
    """Answer as the released program, in one go.

    Depth counts the root. The passages of all segments are the same. What the model writes is cut
    at ``[Retrieval]`` afterwards, and a path goes on only where that stands; finished paths are
    lost as soon as another one is longer.
    """
    settings: Any = driver.settings
    if not settings.released:
        return beam_round(asked, driver)
    choice = asked.decided or released_choice(asked.prefix(), driver)
    offered, places = Offered(), list[int | None]([None])
    flags: list[Flag] = []
    retrieves = choice["action"] == "retrieve"
    if retrieves:
        passages = driver.search(asked.query) if asked.passages is None else asked.passages
        places = [*offered.add(passages)] or places
        flags = ["no_passages"] if places == [None] else []
    critiques, paths = list[Critique](), [_Path("", "", (), goes_on=True)]
    limits = SegmentLimits(settings.max_new_tokens, whole_answer=True)
    for depth in range(max(1, settings.max_depth - 1)):
        live = [path for path in paths if path.goes_on]
        if not live:
            break
        prompts = [
            Continuation(asked.prefix(path.before + path.last), offered[place])
            for path in live
            for place in places
        ]
        written, children = iter(driver.candidates(prompts, limits)), list[_Path]()
        for at, path in enumerate(live):
            last = path.last
            for place in places:
                candidate = next(written)
                text, goes_on = _cut(candidate, settings, retrieves=retrieves)
                critique = _scored(candidate, place, settings, text, depth, at)
                of_path = (*path.critiques, critique)
                as_written = (NO_RETRIEVAL if place is None else "") + text
                children.append(_Path(path.before + last, as_written, of_path, goes_on))
                last = as_written  # The next child takes its sibling's text for its parent's.
        critiques += [path.critiques[-1] for path in children]
        children.sort(key=lambda path: -path.score)
        paths = children[: settings.beam_width]
        for rank, path in enumerate(children, start=1):
            path.critiques[-1]["kept"] = rank <= len(paths)
            path.critiques[-1]["why"] = f"place {rank}, {len(paths)} are kept"
    best = paths[0]
    if settings.task != "biography" and not _with_spaces(_supported(best, settings)):
        best = paths[min(1, len(paths) - 1)]
    for critique in best.critiques:
        critique["chosen"] = True
    answer, cited = _joined(best, settings)
    return Reflection(
        choices=[choice], passages=offered.records, beam=None, critiques=critiques, answer=answer,
        raw=best.before + best.last, cited=cited, score=best.score,
        flags=flags if answer else [*flags, "empty"],
    )  # fmt: skip


RELEASED = Algorithms(released_choice, released_short_form, released_long_form)
"""The released programs where the setting `released` wants them, and ours otherwise."""


def _cut(candidate: Candidate, settings: Any, *, retrieves: bool) -> tuple[str, bool]:
    """Return the segment of a continuation, and whether another one follows."""
    if not retrieves:
        return candidate.text, False
    text, token, _ = remapped(candidate, settings.delta).partition(RETRIEVAL)
    return text, bool(token)


def _scored(  # noqa: PLR0913, PLR0917 - a candidate and its place
    candidate: Candidate, place: int | None, settings: Any, text: str, depth: int, at: int
) -> Critique:
    """Score a continuation, whole, by IsRel and IsSup alone.

    IsUse is read at wrong numbers, and the sequence score is never passed on. An IsRel token that
    was not seen has -100 for its probability.
    """
    critique = critique_of(candidate, place, settings, text=text, segment=depth, hypothesis=at)
    critique["total"] = 0.0
    if place is not None:
        no, yes = ((candidate.relevance or {}).get(token, UNSEEN) for token in RELEVANCE)
        if yes + no:
            critique["relevance"] = yes / (yes + no)
        critique["total"] = (
            settings.weight_relevance * (critique["relevance"] or 0.0)
            + settings.weight_support * (critique["support"] or 0.0)
        )  # fmt: skip
    return critique


def remapped(candidate: Candidate, delta: float) -> str:
    """Return the text of a continuation with ``[No Retrieval]`` rewritten.

    Each one whose `remap_ratio` is above `delta` becomes ``[Retrieval]``, none if that is 1. The
    last part always gets a ``[No Retrieval]`` that the model did not write; a text without any
    stays as it is.
    """
    if NO_RETRIEVAL not in candidate.text:
        return candidate.text
    positions = zip(_RETRIEVE.finditer(candidate.text), candidate.retrieve, strict=False)
    ratios = [remap_ratio(shares) for token, shares in positions if token[0] == NO_RETRIEVAL]
    enders = [RETRIEVAL if min(1.0, ratio) > delta else NO_RETRIEVAL for ratio in ratios]
    parts = candidate.text.split(NO_RETRIEVAL)
    enders += [NO_RETRIEVAL] * (len(parts) - len(enders))
    return "".join(part + ender for part, ender in zip(parts, enders, strict=False))


def remap_ratio(probabilities: Probabilities) -> float:
    """Return (p(yes) + p(continue)) / (p(yes) + p(no)), which may exceed 1.

    A token that was not seen is not quite impossible, so that the ratio is always above 0.
    """
    tokens, least = (RETRIEVAL, NO_RETRIEVAL, CONTINUE), math.exp(UNSEEN)
    yes, no, more = (seen(probabilities, token) or least for token in tokens)
    return (yes + more) / (yes + no)


def _joined(path: _Path, settings: Any) -> tuple[str, list[int]]:
    """Return the answer, and for ASQA the passages that it cites."""
    if all(critique["passage"] is None for critique in path.critiques):
        texts = [released_segment(first_block(one["text"])) for one in path.critiques]
        return " ".join(texts), []
    kept = _supported(path, settings)
    if settings.task == "biography":
        return _spaced(_with_spaces(kept)), []
    return _cited(kept)


def _supported(path: _Path, settings: Any) -> list[Critique]:
    """Leave out segments that say they are unsupported, if the settings want that."""
    ignores = settings.ignore_no_support
    return [one for one in path.critiques if not (ignores and NO_SUPPORT in one["text"])]


def _with_spaces(critiques: Sequence[Critique]) -> str:
    """Join texts with a space, one of which the released program puts before the first."""
    return released_segment(" ".join(["", *(critique["text"] for critique in critiques)]))


def _cited(critiques: Sequence[Critique]) -> tuple[str, list[int]]:
    """Number citations by the place of their segment.

    The released program appends to the list of passages only for segments that it does not skip, so
    after one that repeats another the numbers no longer match the list. A segment that is left with
    no words is cited all the same.
    """
    answer, said, cited = "", set[str](), list[int]()
    for number, critique in enumerate(critiques, start=1):
        text = released_segment(critique["text"])
        if not critique["text"] or text in said:
            continue
        said.add(text)
        if critique["passage"] is None:
            answer += f"{text} "
            continue
        answer += f"{text[:-1]} [{number}]. "
        cited.append(critique["passage"])
    answer = _spaced(answer.removesuffix(" ")).replace(f".{CONTINUE}", " [1]. ")
    return answer.replace(". [1] ", " [1]. "), cited


def _spaced(text: str) -> str:
    """Insert the space that is missing between a sentence's end and a word."""
    return _MISSING_SPACE.sub(r"\1 ", text)
