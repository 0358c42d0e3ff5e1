"""Keep test questions apart from what an evaluator was trained on."""

import re
from collections.abc import Sequence
from pathlib import Path

from crag.papers.bench.examples import Loaded, Refused
from crag.papers.evaluator.pairs import read_pairs

_WORD = re.compile(r"\w+")


def kept_apart(loaded: Loaded, trained_on: Sequence[Path]) -> Loaded:
    """Skip questions that occur in training files, or whose subject is relevant there.

    The paper trains its evaluator on the rows of PopQA outside the test set (CRAG, App. B), so both
    may ask about the same subject. Case and punctuation are ignored.

    Raises:
        DataError: an evaluator cannot be trained on one of the files.
    """
    pairs = [pair for path in trained_on for pair in read_pairs(path)]
    asked = {_plain(pair.question) for pair in pairs}
    titles = {_plain(pair.title) for pair in pairs if pair.positive and pair.title}
    kept, refused = [], list(loaded.refused)
    for one in loaded.examples:
        if _plain(one.question) in asked or titles & set(map(_plain, one.gold_titles)):
            reason = "the evaluator was trained on it or on its page"
            refused.append(Refused(f"question {one.id!r}", reason, one.id))
        else:
            kept.append(one)
    return Loaded(kept, refused, loaded.notes)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
