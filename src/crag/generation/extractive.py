"""Answer without a language model: quote the sentences that the evaluator supports best."""

from collections.abc import Iterator, Sequence

from crag.correction.scoring import scores_of
from crag.correction.strips import FEWEST_WORDS
from crag.parts import Evaluator, Passage, Quotation
from crag.state import Strip
from crag.text.sentences import sentences_of

_MARKUP = ("#", "|", "```", "![")
"""What a line begins with that is no prose: headings, table rows, code fences, pictures."""


class ExtractiveAnswerer:
    """Quote at most `most` sentences that score at least `threshold`, in the strips' order.

    `threshold` is on the evaluator's scale; unset, it is the evaluator's own upper threshold. Where
    a strip reaches it as a whole but none of its sentences does, its best sentence stands for it.
    Headings, table rows and fragments of under four words are not quoted, nor is the same sentence
    twice.
    """

    def __init__(
        self, evaluator: Evaluator, *, most: int = 3, threshold: float | None = None
    ) -> None:
        self._evaluator = evaluator
        self._most = most
        self._threshold = evaluator.thresholds["upper"] if threshold is None else threshold

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        """Score all sentences of `strips` in one evaluator call and return the best."""
        sentences = list(_quotable(strips))
        passages = [Passage(strips[i]["source"]["title"], text) for i, text in sentences]
        scores = scores_of(self._evaluator, question, passages) if passages else []
        quotations = [
            Quotation(text, index, score)
            for (index, text), score in zip(sentences, scores, strict=True)
        ]
        serving = [quoted for quoted in quotations if self._serves(quoted, quotations, strips)]
        best = sorted(serving, key=lambda quotation: -quotation.score)[: self._most]
        return [quotation for quotation in serving if quotation in best]

    def _serves(
        self, quoted: Quotation, quotations: Sequence[Quotation], strips: Sequence[Strip]
    ) -> bool:
        if quoted.score >= self._threshold:
            return True
        whole = strips[quoted.strip]["score"]
        rivals = (other.score for other in quotations if other.strip == quoted.strip)
        return whole is not None and whole >= self._threshold and quoted.score == max(rivals)


def _quotable(strips: Sequence[Strip]) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for index, strip in enumerate(strips):
        for sentence in sentences_of(_prose(strip["text"])):
            if len(sentence.split()) >= FEWEST_WORDS and sentence not in seen:
                seen.add(sentence)
                yield index, sentence


def _prose(text: str) -> str:
    lines = text.splitlines()
    plain = (line for line in lines if not line.lstrip().startswith(_MARKUP) | line.endswith("|"))
    return "\n".join(plain)
