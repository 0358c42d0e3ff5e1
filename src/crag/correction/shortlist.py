"""A shortlist by word overlap, for more texts than an evaluator should score."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import count

from crag.text.words import question_words, words


def shortlist(question: str, texts: Sequence[str], most: int, sources: Sequence[str]) -> list[int]:
    """Return the indices of the `most` texts closest to the question, in their order.

    A word of the question weighs the logarithm of its rarity in the texts. The best text of each
    source comes before the second best of any source, so one page full of the question's words
    cannot crowd out the others. Ties go to the earlier text.
    """
    if len(texts) <= most:
        return list(range(len(texts)))
    shared = [{*question_words(question)}.intersection(words(text)) for text in texts]
    seen = Counter(word for own in shared for word in own)
    weight = {word: math.log((len(texts) + 1) / times) for word, times in seen.items()}
    best = sorted(range(len(texts)), key=lambda place: -sum(weight[w] for w in shared[place]))
    turns: defaultdict[str, count[int]] = defaultdict(count)
    in_turns = sorted(best, key=lambda place: next(turns[sources[place]]))
    return sorted(in_turns[:most])


def shares_less(question: str, text: str, snippet: str) -> bool:
    """Return whether a text has fewer of the question's words than a snippet of it should show.

    Then it is another text: a check for robots, a login or a notice that the page is gone.
    """
    asked = {*question_words(question)}
    return len(asked.intersection(words(text))) < len(asked.intersection(words(snippet)))
