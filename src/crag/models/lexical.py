"""Lexical features of question and text, which the reader blends into its grade.

A small encoder trained on answers loses some of what plain matching finds: that the question's rare
words occur in the text, close together, or in its title. The features add that back and cost a
fraction of a millisecond.
"""

import numpy as np
from numpy.typing import NDArray

FEATURES = (
    "question_in_text", "question_in_text_or_title", "title_in_question", "question_in_title",
    "run_in_text", "run_in_title", "question_in_window", "length", "title_stands_in_question",
)  # fmt: skip
"""Shares by weight, in [0, 1], but `length`, the logarithm of the number of tokens, and the last,
which is 1 if the whole title is a run within the question, else 0. A token weighs its inverse
document frequency. A run is the longest common sequence without a gap; a window is thirty tokens of
the text."""
_NEAR = 1e-6
"""Sums of 32-bit weights differ by less when they are of the same words."""
_STRIDE = 15
"""Tokens of each step; two make a window, in which words of the question may stand together."""


def features(
    question: NDArray[np.int64],
    title: NDArray[np.int64],
    text: NDArray[np.int64],
    rarity: NDArray[np.float32],
) -> list[float]:
    """Return `FEATURES` of one pair; all three arguments are tokens without special tokens."""
    weight = rarity[question]
    whole = float(weight.sum()) or 1.0
    in_text, in_title = _among(question, text), _among(question, title)
    title_weight = float(rarity[title].astype(np.float64).sum())
    run_in_title = _longest_run(question, title, rarity)
    return [
        float(weight[in_text].sum()) / whole,
        float(weight[in_text | in_title].sum()) / whole,
        float(rarity[title[_among(title, question)]].sum()) / (title_weight or 1.0),
        float(weight[in_title].sum()) / whole,
        _longest_run(question, text, rarity) / whole,
        run_in_title / whole,
        _best_window(question, text, rarity) / whole,
        float(np.log1p(len(text))),
        float(title_weight > 0 and run_in_title > title_weight - _NEAR),
    ]


def bare_title(title: str) -> str:
    """Return a title without its part in brackets: ``Ada`` of ``Ada (film)``."""
    return title.partition(" (")[0]


def _among(tokens: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of each token whether the others have it; `np.isin` takes longer for so few."""
    known = set(others.tolist())
    return np.array([token in known for token in tokens.tolist()], dtype=np.bool_)


def _longest_run(
    question: NDArray[np.int64], text: NDArray[np.int64], rarity: NDArray[np.float32]
) -> float:
    places: dict[int, list[int]] = {}
    for place, token in enumerate(text.tolist()):
        places.setdefault(token, []).append(place)
    best = 0.0
    runs: dict[int, float] = {}
    """What a run weighs that ends before a place of the text, with the token before."""
    for token, weight in zip(question.tolist(), rarity[question].tolist(), strict=True):
        runs = {place + 1: runs.get(place, 0.0) + weight for place in places.get(token, ())}
        best = max(best, *runs.values()) if runs else best
    return best


def _best_window(
    question: NDArray[np.int64], text: NDArray[np.int64], rarity: NDArray[np.float32]
) -> float:
    if not len(text):
        return 0.0
    tokens = np.unique(question)
    present = text[None, :] == tokens[:, None]
    steps = np.logical_or.reduceat(present, range(0, len(text), _STRIDE), axis=1)
    windows = steps[:, :-1] | steps[:, 1:] if len(text) > _STRIDE else steps
    # As a matrix product, numpy warned of invalid values here although there are none.
    weighed = (np.ascontiguousarray(windows.T) * rarity[tokens]).sum(axis=1)
    return float(weighed.max(initial=0.0))
