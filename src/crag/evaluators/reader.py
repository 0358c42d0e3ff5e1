"""The reader: a small encoder that grades a passage, marks its evidence and finds the answer.

It also finds what supports the sentences of an answer.
"""

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Self

import numpy as np

from crag.answering.support import WordAttributor, degree_of, is_quoted
from crag.correction.strips import FEWEST_WORDS, LOWEST, split_title
from crag.errors import EvaluatorError
from crag.evaluators.cross_encoder import UNCALIBRATED
from crag.models.encoder import packaged_encoder
from crag.models.model_card import CARD, ModelCard, read_card
from crag.models.reading_model import OVERLAP, PACKAGED, SHORTEST_INPUT, ReaderModel, View
from crag.parts import Passage
from crag.reading import Reading, Span, compressed
from crag.text.words import word_count


class ReaderEvaluator:
    """Read each passage once: grade, evidence for any part of it, and the best answer span.

    `score` is that of `CrossEncoderEvaluator`: 2p - 1 for a probability p that the passage serves
    the question. A passage longer than the model's input is read in windows that overlap; its
    score is that of the best one. Of a passage of more than 16 windows, about 3,000 words, the ones
    that share most words with the question are read, and the others hold no evidence. An empty text
    scores -1.0 without the model. Thread-safe.
    """

    def __init__(self, model: ReaderModel, card: ModelCard) -> None:
        self.model, self.card, fitted = model, card, card.calibration
        self.thresholds = fitted.thresholds if fitted else UNCALIBRATED
        """The thresholds on the card; 0.5 and -0.5 as long as it has none."""
        quote, closest = (fitted.quote, fitted.closest) if fitted else (None, None)
        self.quote_threshold = self.thresholds["upper"] if quote is None else quote
        """The quoting threshold on the card; the upper threshold as long as it has none."""
        self.closest_threshold = LOWEST if closest is None else closest
        """The score from which on a passage is shown as one of the closest; -1 without a card's."""

    @classmethod
    @cache
    def packaged(cls) -> "ReaderEvaluator":
        """Return the reader that ships with this package, the same for all: 24 MB of weights."""
        return cls.stored(files("crag.models").joinpath(PACKAGED))

    @classmethod
    def stored(cls, folder: Traversable) -> Self:
        """Return the reader in a folder, such as `crag train reader` writes.

        Raises:
            EvaluatorError: the folder has no card, or that of another kind.
        """
        card = read_card(folder)
        if card is None or card.kind != "reader" or card.max_length < SHORTEST_INPUT:
            held = f"a {card.kind} for {card.max_length} tokens" if card else f"no {CARD}"
            wanted = f"a reader has a {CARD} that says so, for at least {SHORTEST_INPUT}"
            raise EvaluatorError(f"{folder} holds {held}; {wanted}")
        return cls(ReaderModel(folder, card.max_length, card.files), card)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text; ``title // text`` is read by `split_title`."""
        return self.score_pairs([(question, split_title(text)) for text in texts])

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order."""
        return self._readings([(question, passage) for passage in passages])

    def similarity(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the cosine, in [-1, 1], of the question and each text, by the packaged encoder."""
        asked, *found = np.array(packaged_encoder().embed_documents([question, *texts]))
        return [float(asked @ one) for one in found]

    def score_pairs(self, pairs: Sequence[tuple[str, Passage]]) -> list[float]:
        """Return one score in [-1, 1] for each question and passage, in order."""
        return [reading["score"] for reading in self._readings(pairs)]

    def _readings(self, pairs: Sequence[tuple[str, Passage]]) -> list[Reading]:
        views = self.model.views(pairs)
        return [self._reading(text, found) for (_, text), found in zip(pairs, views, strict=True)]

    def _reading(self, passage: Passage, views: Sequence[View]) -> Reading:
        if not views:
            return Reading(score=LOWEST, evidence="", span=None)
        score = math.tanh(max(map(self.model.grade, views)) / 2)
        best = max(views, key=lambda view: view.span[2])
        span = None
        if best.window.offsets:  # All characters of a text may be unknown to the tokenizer.
            first, last, odds = best.span
            start, end = best.window.offsets[first][0], best.window.offsets[last][1]
            span = Span(start=start, end=end, score=math.tanh(odds / 2))
        return Reading(score=score, evidence=_evidence(passage.text, views), span=span)


def _overlap(earlier: View, later: View) -> bool:
    return later.window.first < earlier.window.first + len(earlier.window.offsets)


def _evidence(text: str, views: Sequence[View]) -> str:
    """Return the evidence of each word of a text, equal neighbours joined.

    Where two windows overlap, that one counts in which a token stands further from the edge. What
    lies in none, since its windows were not read, has no evidence.
    """
    ends: list[int] = []
    odds: list[float] = []
    following = -1
    for place, view in enumerate(views):
        follows = place > 0 and _overlap(views[place - 1], view)
        precedes = place + 1 < len(views) and _overlap(view, views[place + 1])
        values, offsets = view.evidence.tolist(), view.window.offsets
        until = len(offsets) - (OVERLAP // 2 if precedes else 0)
        for token in range(OVERLAP // 2 if follows else 0, until):
            start, end = offsets[token]
            is_next, before = view.window.first + token == following, ends[-1] if ends else 0
            following = view.window.first + token + 1
            if ends and start <= before:  # Pieces of one word.
                ends[-1], odds[-1] = end, max(odds[-1], values[token])
                continue
            if not is_next and start > before:
                ends.append(start)
                odds.append(-math.inf)
            ends.append(end)
            odds.append(values[token])
    if not ends:
        return "0:0"
    if ends[-1] < len(text.rstrip()):
        ends.append(len(text))
        odds.append(-math.inf)
    ends[-1] = len(text)
    return compressed(ends, [(1 + math.tanh(value / 2)) / 2 for value in odds])


class ReaderAttributor:
    """Judge support as embedded reflection judges IsSup: shared words, times what the reader says.

    The reader is asked with the sentence in place of a question; one of under four words, which
    says little alone, is read after the question. All pairs are read in one call; a pair whose
    words alone do not reach the threshold is not read, and a sentence that a passage holds word by
    word is supported. The threshold was chosen on sentences made from SQuAD (`papers/README.md`).
    """

    def __init__(self, reader: ReaderEvaluator) -> None:
        self._reader = reader
        self.threshold = 0.3

    def support(
        self, question: str, sentences: Sequence[str], passages: Sequence[Passage]
    ) -> list[list[float]]:
        """Return for each sentence a degree in [0, 1] for each passage."""
        degrees = WordAttributor().support(question, sentences, passages)
        claims: dict[tuple[int, int], tuple[str, Passage]] = {}
        for row, sentence in enumerate(sentences):
            is_short = word_count(sentence) < FEWEST_WORDS
            for column, passage in enumerate(passages):
                if not is_short and is_quoted(sentence, passage):
                    degrees[row][column] = 1.0
                elif degrees[row][column] >= self.threshold:
                    claim = f"{question} {sentence}" if is_short else sentence
                    claims[row, column] = claim, passage
        scores = self._reader.score_pairs(list(claims.values()))
        for (row, column), score in zip(claims, scores, strict=True):
            degrees[row][column] *= degree_of(score, self._reader.thresholds)
        return degrees
