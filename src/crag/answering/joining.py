"""One answer from the answers to the parts of a question, with citations across all of them."""

import re
from collections.abc import Mapping, Sequence

from crag.answering.citations import renumbered
from crag.answering.context import numbered
from crag.answering.outcome import NOT_FOUND, UNSURE_OF_PART
from crag.state import Citation, Strip, SubQuestion
from crag.text.marks import SINGLE, marks_of

StripPlace = tuple[str, str, str]
_AFTER_QUOTATION = re.compile(rf"(?<=” )(?:{SINGLE})")


def merged(strips: Sequence[Strip], others: Sequence[Strip]) -> list[Strip]:
    """Return the strips of both, each once; one that either kept is kept."""
    by_place = {place_of(strip): strip for strip in strips}
    for strip in others:
        key = place_of(strip)
        if key not in by_place or (strip["kept"] and not by_place[key]["kept"]):
            by_place[key] = strip
    return list(by_place.values())


def joined(parts: Sequence[SubQuestion], strips: Sequence[Strip]) -> tuple[str, list[Citation]]:
    """Write the answers one after the other, with their citations numbered as `strips` are.

    A part without a sure answer becomes its question, followed by its closest passage or by the
    sentence that nothing was found. An answer that an earlier one says already is left out. If no
    part is answered, the closest passages alone are left; without them the answer is empty.
    """
    numbers = {place_of(one): one["number"] for one in numbered(strips)}
    citations: dict[int, Citation] = {}
    texts: list[str] = []
    is_answered = not all(part["abstained"] for part in parts)
    for part in parts:
        places = {one["number"]: numbers[place_of(one)] for one in part["citations"]}
        text, cited = _with_numbers(part, places), set(places.values())
        if part["abstained"]:
            text, cited = _closest(text)
            if is_answered:
                told = f"{UNSURE_OF_PART}\n\n{text}" if text else NOT_FOUND
                text = f"{part['asked']} {told}"
        if text and not any(text in earlier for earlier in texts):
            texts.append(text)
            for citation in part["citations"]:
                number = places[citation["number"]]
                if number in cited:
                    citations[number] = _both(citations.get(number), citation, number)
    return "\n\n".join(texts), [citations[number] for number in sorted(citations)]


def _closest(answer: str) -> tuple[str, set[int]]:
    """Return the first passage that is quoted after a sentence that no answer is sure, if any."""
    mark = _AFTER_QUOTATION.search(answer)
    if mark is None:
        return "", set()
    numbers = {number for found in marks_of(mark[0]) for number in found.numbers}
    return answer[answer.index("“") : mark.end()], numbers


def _with_numbers(part: SubQuestion, numbers: Mapping[int, int]) -> str:
    """Change the numbers of citations, but not those in brackets within a quotation."""
    if not any("quotes" in citation for citation in part["citations"]):
        return renumbered(part["answer"], numbers)
    return _AFTER_QUOTATION.sub(lambda mark: renumbered(mark[0], numbers), part["answer"])


def _both(known: Citation | None, citation: Citation, number: int) -> Citation:
    if known is None:
        return {**citation, "number": number}
    quotes = [*known.get("quotes", []), *citation.get("quotes", [])]
    return {**known, "quotes": quotes} if quotes else known


def place_of(strip: Strip | Citation) -> StripPlace:
    """Return what tells a strip from others: its text and where it is from."""
    return strip["text"], strip["source"]["id"], strip["source"]["url"]
