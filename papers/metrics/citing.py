"""Citation recall and precision as ALCE measures them (ALCE, Sec. 3; Self-RAG, Sec. 4.1).

A natural-language-inference model says whether cited passages entail a sentence. The official one
is TRUE (`google/t5_xxl_true_nli_mixture`, 11B parameters); any function of two texts works, but
numbers of different functions must not be compared. `entailment.py` loads models.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from crag.papers.bench.examples import Example
from crag.papers.metrics.long_form import first_line, single_marks, without_citations
from crag.papers.metrics.metric import Row, RowMetric
from crag.papers.metrics.sentences import Splitter, sentences

AT_MOST = 3
"""Most citations per sentence that count; the published runs ignore the rest."""
Entails = Callable[[str, str], bool]
"""Does the premise (passages) entail the hypothesis (a sentence)?"""
# What ALCE takes for a citation, whichever marks our answers have.
_NUMBER = re.compile(r"\[(\d+)")


class Cited(NamedTuple):
    """How well one answer is supported."""

    recall: float
    """The share of sentences that their citations together entail."""
    precision: float
    """The share of citations that entail alone or are needed, in sentences that are entailed."""


def passage_text(title: str, text: str) -> str:
    """Format a passage for the entailment model."""
    return f"Title: {title}\n{text}"


def cited(
    answer: str, passages: Mapping[int, str], entails: Entails, split: Splitter = sentences
) -> Cited | None:
    """Measure one answer whose ``[n]`` is the passage `n`; None if it has no sentence.

    A sentence without a citation, or with one that refers to nothing, is not supported; citations
    of the latter do not count for precision. ``[1, 2]`` is read as ``[1][2]``.
    """
    said = split(single_marks(first_line(answer)))
    if not said:
        return None
    judged = [_judge(sentence, passages, entails) for sentence in said]
    supported = sum(sentence.supported for sentence in judged)
    citations = sum(sentence.citations for sentence in judged)
    right = sum(sentence.right for sentence in judged)
    return Cited(supported / len(said), right / citations if citations else 0.0)


class _Sentence(NamedTuple):
    supported: bool
    citations: int
    right: int


def _judge(sentence: str, passages: Mapping[int, str], entails: Entails) -> _Sentence:
    numbers = [int(number) for number in _NUMBER.findall(sentence)]
    if not numbers or not passages.keys() >= set(numbers):
        return _Sentence(supported=False, citations=0, right=0)
    texts, claim = [passages[n] for n in numbers[:AT_MOST]], without_citations(sentence).strip()
    if not entails("\n".join(texts), claim):
        return _Sentence(supported=False, citations=len(texts), right=0)
    right = sum(_needed(place, texts, claim, entails) for place in range(len(texts)))
    return _Sentence(supported=True, citations=len(texts), right=right)


def _needed(place: int, texts: Sequence[str], claim: str, entails: Entails) -> bool:
    """Return whether a citation entails the claim alone, or the others do not without it."""
    if len(texts) == 1 or entails(texts[place], claim):
        return True
    return not entails("\n".join([*texts[:place], *texts[place + 1 :]]), claim)


def citation_metrics(
    entails: Entails | None = None, split: Splitter = sentences
) -> tuple[RowMetric, RowMetric]:
    """Return citation recall and precision by `entails`; without it they have no values.

    The row's `citations` are the texts that the numbers of an answer refer to.
    """
    once = None if entails is None else cache(entails)

    def of(field: str) -> Callable[[Example, Row], float | None]:
        def compute(_: Example, row: Row) -> float | None:
            found = once and cited(str(row["answer"]), _passages(row), once, split)
            return getattr(found, field) if found else None

        return compute

    return (
        RowMetric(name="citation_recall", compute=of("recall"), needs="--entailment"),
        RowMetric(name="citation_precision", compute=of("precision"), needs="--entailment"),
    )


UNSUPPORTED = RowMetric(
    name="unsupported",
    compute=lambda _, row: row.get("unsupported"),
    direction="lower",
)
"""The share of an answer's sentences that no kept strip supports, as the reader attributes them."""


def _passages(row: Row) -> dict[int, str]:
    return {one["number"]: passage_text(one["title"], one["text"]) for one in row["citations"]}
