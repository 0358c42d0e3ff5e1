"""A critic that knows the truth: labels of Alg. 2 from the questions that the pairs were made from.

A small critic judges worse than the truth of its data, and calls a model for each judgement. Where
the truth is known, no critic is needed to make data for a generator.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from crag.answering.outcome import DECLINED
from crag.papers.evaluator.pairs import folded
from crag.papers.self_rag.critique_cases import Case
from crag.papers.self_rag.truths import Gold, Truth
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)

_DECLINES, _SHORT, _BEST = UTILITY[1], UTILITY[3], UTILITY[4]


class TruthCritic:
    """Label cases about known questions by what their passages hold.

    kind           label
    -------------- -----------------------------------------------------------------------------
    retrieve       Retrieval for a known question, No Retrieval for any other instruction
    retrieve_next  Continue if the evidence has the sentence word by word, Retrieval otherwise
    relevance      Relevant if the evidence holds an answer of the question
    support        Fully if the evidence has the output word by word, No support if the output
                   lacks the answer or declines, Partially if it has the answer and more
    utility        2 if it declines, 4 if it is the answer alone, 5 otherwise
    """

    def __init__(self, truths: Sequence[Truth]) -> None:
        golds: Mapping[str, list[Gold]] = defaultdict(list)
        for truth in truths:
            golds[folded(truth.question)] += truth.gold
        self._golds = dict(golds)

    def labels(self, cases: Sequence[Case]) -> list[str]:
        """Return the label of each case."""
        return [self._label(case) for case in cases]

    def _label(self, case: Case) -> str:
        golds = self._golds.get(folded(case.instruction), [])
        evidence, output = folded(case.evidence), folded(case.output)
        answers = [folded(gold.answer) for gold in golds]
        match case.kind:
            case "retrieve":
                is_known = folded(case.instruction) in self._golds
                return RETRIEVAL if is_known else NO_RETRIEVAL
            case "retrieve_next":
                return CONTINUE if output in evidence else RETRIEVAL
            case "relevance":
                return RELEVANT if any(answer in evidence for answer in answers) else IRRELEVANT
            case "support":
                return _support(evidence, output, answers)
            case "utility" if case.output == DECLINED:
                return _DECLINES
            case "utility":
                return _SHORT if output in answers else _BEST


def _support(evidence: str, output: str, answers: Sequence[str]) -> str:
    if output == folded(DECLINED):
        return NO_SUPPORT
    if output in evidence:
        return FULLY
    return PARTIALLY if any(answer in output for answer in answers) else NO_SUPPORT
