"""Instructions and outputs from questions whose truth is known: where Alg. 2 begins."""

import random
from collections.abc import Sequence

from crag.answering.outcome import DECLINED
from crag.papers.training.self_rag.critique_rules import critique_cases
from crag.papers.training.self_rag.generator_data import Pair
from crag.papers.training.self_rag.self_contained import self_contained
from crag.papers.training.self_rag.truths import Truth
from crag.reflection_tokens import FULLY

_LONGEST = 400
"""Characters of a sentence that is used as an output; above it the answer alone is used."""


def instruction_pairs(  # noqa: PLR0913 - the shares of what is made
    truths: Sequence[Truth],
    count: int,
    *,
    without_retrieval: float = 0.2,
    declined: float = 0.0,
    unsupported: float = 0.0,
    seed: int = 0,
) -> list[Pair]:
    """Return `count` pairs, or fewer if there are not so many questions.

    The output is the sentence that holds the answer, or `DECLINED` where no passage holds one. Of
    all pairs, the share `without_retrieval` are tasks that hold all they need, the share `declined`
    are answerable questions that are declined (for the passages that do not answer them), and the
    share `unsupported` state another number, date or name than the passage, or more than it holds.
    """
    draw = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    count = min(count, round(len(truths) / (1 - without_retrieval)))
    tasks, refusals, wrong = (round(count * s) for s in (without_retrieval, declined, unsupported))
    rest = max(0, count - tasks - refusals - wrong)
    order = draw.sample(truths, k=len(truths))
    pairs = [Pair(instruction=truth.question, output=_answer(truth)) for truth in order[:rest]]
    sentences = [pair.output for pair in pairs if pair.output != DECLINED]
    answerable = [truth for truth in order[rest:] if truth.gold]
    pairs += [Pair(instruction=t.question, output=DECLINED) for t in answerable[:refusals]]
    pairs += _unsupported(answerable[refusals:], wrong, seed)
    if sentences:
        made = self_contained(sentences, tasks, seed)
        pairs += [Pair(instruction=one.instruction, output=one.output) for one in made]
    draw.shuffle(pairs)
    return pairs


def _unsupported(truths: Sequence[Truth], count: int, seed: int) -> list[Pair]:
    if not count:
        return []
    cases = critique_cases(truths, count, seed).cases
    wrong = [one for one in cases if one.kind == "support" and one.label != FULLY]
    wrong = [one for one in wrong if one.output != DECLINED]
    return [Pair(instruction=one.instruction, output=one.output) for one in wrong[:count]]


def _answer(truth: Truth) -> str:
    if not truth.gold:
        return DECLINED
    gold = truth.gold[0]
    return gold.sentence if len(gold.sentence) <= _LONGEST else gold.answer
