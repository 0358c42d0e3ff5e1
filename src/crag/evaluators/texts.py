"""Texts in groups: empty ones left out, scores in the order of all."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from crag.correction.strips import LOWEST


def scored(
    texts: Sequence[str],
    most: int,
    score: Callable[[list[str]], Iterable[float]],
    *,
    longest_first: bool = False,
    run: Callable[..., Iterable[Any]] = map,
) -> list[float]:
    """Return one score for each text, by calls of `score` with at most `most` texts.

    An empty text scores -1.0 without a call. `longest_first` puts texts of like length into a call;
    `run` makes the calls, as `map` does.
    """
    places = [place for place, text in enumerate(texts) if text.strip()]
    if longest_first:
        places.sort(key=lambda place: -len(texts[place]))
    asked = [texts[place] for place in places]
    groups = [asked[start : start + most] for start in range(0, len(asked), most)]
    scores = [LOWEST] * len(texts)
    for place, found in zip(places, chain.from_iterable(run(score, groups)), strict=True):
        scores[place] = found
    return scores
