"""Find what supports the sentences of an answer, with the reader."""

from collections.abc import Sequence

from crag.answering.support import agreement, degree_of, is_quoted
from crag.correction.strips import FEWEST_WORDS
from crag.evaluators.reader import ReaderEvaluator
from crag.parts import Passage
from crag.text.words import word_count


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
        degrees = [
            [agreement(sentence, passage, question) for passage in passages]
            for sentence in sentences
        ]
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
