"""Answer without a language model: quote what the evaluator supports best."""

from collections.abc import Sequence

from crag.answering.quoting import quotations_in
from crag.correction.evidence import parts_in_context
from crag.correction.strips import FEWEST_WORDS, LOWEST
from crag.parts import Evaluator, Passage, Quotation, ReadingEvaluator, is_reading
from crag.runtime.calls import readings_of
from crag.state import Strip
from crag.text.units import parts_of
from crag.text.words import word_count

_MOST_SENTENCES, _MOST_STRIPS = 3, 4
"""The most quotations of an answer: sentences scored one by one, or strips that were read."""


class ExtractiveAnswerer:
    """Quote a few parts of the strips, if the best reaches a threshold.

    An evaluator that reads has read the strips in their documents; the best four of them are
    quoted, the very best first, and nothing is evaluated again. What does not reach it is
    likely to answer, unless it is below the evaluator's `closest_threshold` too. See
    `crag.answering.quoting`.

    With any other evaluator, sentences are scored alone, in one call, and three that reach the
    threshold are quoted. Only prose of four words and more is quoted, nothing twice.

    The threshold is the evaluator's own for quotations, or its upper one if it has none.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        """Return the best quotations: the best first of one that reads, else as the strips are."""
        if is_reading(self._evaluator):
            return self._read(self._evaluator, question, strips)
        sentences = _sentences(strips)
        passages = [Passage(strips[i]["source"]["title"], text) for text, i in sentences.items()]
        readings = readings_of(self._evaluator, question, passages)
        threshold = self._evaluator.thresholds["upper"]
        quotations = [
            Quotation(text, index, reading["score"])
            for (text, index), reading in zip(sentences.items(), readings, strict=True)
            if reading["score"] >= threshold
        ]
        best = sorted(quotations, key=lambda quotation: -quotation.score)
        chosen = best[:_MOST_SENTENCES]
        return [quotation for quotation in quotations if quotation in chosen]

    def _read(
        self, evaluator: ReadingEvaluator, question: str, strips: Sequence[Strip]
    ) -> list[Quotation]:
        """Quote strips; what no node has read, such as whole documents, is read and cut first."""
        unread = [index for index, strip in enumerate(strips) if "reading" not in strip]
        passages = [Passage(strips[i]["source"]["title"], strips[i]["text"]) for i in unread]
        fresh = evaluator.read(question, passages) if passages else []
        readings = dict(zip(unread, fresh, strict=True))
        parts = [
            (index, offset, part)
            for index, strip in enumerate(strips)
            for offset, part in (
                parts_in_context(strip, readings[index]) if index in readings else [(0, strip)]
            )
        ]
        quotations = quotations_in(
            question,
            [part for _, _, part in parts],
            most=_MOST_STRIPS,
            threshold=evaluator.quote_threshold,
            # Other evaluators may have no least score of a passage worth showing, nor an encoder.
            closest=float(getattr(evaluator, "closest_threshold", LOWEST)),
            similarity=getattr(evaluator, "similarity", None),
        )
        return [_of_whole(one, *parts[one.strip][:2]) for one in quotations]


def _of_whole(quotation: Quotation, whole: int, offset: int) -> Quotation:
    """Return a quotation of a part as one of the strip that the part was cut from."""
    place, span = (
        bounds and (bounds[0] + offset, bounds[1] + offset)
        for bounds in (quotation.place, quotation.span)
    )
    return quotation._replace(strip=whole, place=place, span=span)


def _sentences(strips: Sequence[Strip]) -> dict[str, int]:
    """Return the sentences of prose that may be quoted, each with the first strip that has it."""
    sentences: dict[str, int] = {}
    for index, strip in enumerate(strips):
        for part in parts_of(strip["text"]):
            sentence = " ".join(strip["text"][part.start : part.end].split())
            if part.kind == "sentence" and word_count(sentence) >= FEWEST_WORDS:
                sentences.setdefault(sentence, index)
    return sentences
