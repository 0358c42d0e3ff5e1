"""Instructions and outputs from questions whose truth is known: where Alg. 2 begins."""

import random
from collections.abc import Sequence

from crag.training.self_rag.generator_data import Pair
from crag.training.self_rag.self_contained import self_contained
from crag.training.self_rag.truths import Truth

DECLINED = "What I found does not answer this."
"""The output for a question that no passage answers."""
_LONGEST = 400
"""Characters of a sentence that is used as an output; above it the answer alone is used."""


def instruction_pairs(
    truths: Sequence[Truth], count: int, *, without_retrieval: float = 0.2, seed: int = 0
) -> list[Pair]:
    """Return `count` pairs, or fewer if there are not so many questions.

    The output is the sentence that holds the answer, or `DECLINED` where no passage holds one. A
    share of the pairs, `without_retrieval`, are tasks that hold all they need.
    """
    draw = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    tasks = round(count * without_retrieval)
    chosen = draw.sample(truths, k=min(len(truths), count - tasks))
    pairs = [Pair(instruction=truth.question, output=_answer(truth)) for truth in chosen]
    sentences = [pair.output for pair in pairs if pair.output != DECLINED]
    if sentences:
        made = self_contained(sentences, tasks, seed)
        pairs += [Pair(instruction=one.instruction, output=one.output) for one in made]
    draw.shuffle(pairs)
    return pairs


def _answer(truth: Truth) -> str:
    if not truth.gold:
        return DECLINED
    gold = truth.gold[0]
    return gold.sentence if len(gold.sentence) <= _LONGEST else gold.answer
