"""Instructions and outputs from questions whose truth is known: where Alg. 2 begins.

kind       instruction                 output
---------- --------------------------- -----------------------------------------------------------
question   the question                the sentence with the answer, and perhaps those after it
task       one that holds all it needs what was asked for
"""

import random
from collections.abc import Sequence

from crag.answering.outcome import DECLINED
from crag.papers.self_rag.critique_rules import critique_cases, self_contained
from crag.papers.self_rag.generator_data import Pair
from crag.papers.self_rag.truths import Truth
from crag.reflection_tokens import FULLY
from crag.text.sentences import sentences_of

_LONGEST = 400
"""Characters of a sentence that is used as an output; above it the answer alone is used."""


def instruction_pairs(  # noqa: PLR0913 - the shares of what is made
    truths: Sequence[Truth],
    count: int,
    *,
    without_retrieval: float = 0.2,
    declined: float = 0.0,
    unsupported: float = 0.0,
    sentences: int = 1,
    seed: int = 0,
) -> list[Pair]:
    """Return `count` pairs, or fewer if there are not so many questions.

    Of all pairs, the share `without_retrieval` are tasks that hold all they need, the share
    `declined` are answerable questions that are declined (for the passages that do not answer
    them), and the share `unsupported` state another number, date or name than the passage, or more
    than it holds. The output of the others has up to `sentences`, and is `DECLINED` where no
    passage holds the answer.
    """
    draw = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    count = min(count, round(len(truths) / (1 - without_retrieval)))
    tasks, refusals, wrong = (round(count * s) for s in (without_retrieval, declined, unsupported))
    rest = max(0, count - tasks - refusals - wrong)
    order = draw.sample(truths, k=len(truths))
    pairs = [_asked(truth.question, _answer(truth, sentences)) for truth in order[:rest]]
    stated = [t.gold[0].sentence for t in order[:rest] if t.gold]
    answerable = [truth for truth in order[rest:] if truth.gold]
    pairs += [_asked(t.question, DECLINED) for t in answerable[:refusals]]
    pairs += _unsupported(answerable[refusals:], wrong, seed)
    if stated:
        made = self_contained(stated, tasks, seed)
        pairs += [
            Pair(instruction=one.instruction, output=one.output, dataset_name="task")
            for one in made
        ]
    draw.shuffle(pairs)
    return pairs


def _asked(question: str, output: str) -> Pair:
    return Pair(instruction=question, output=output, dataset_name="question")


def _unsupported(truths: Sequence[Truth], count: int, seed: int) -> list[Pair]:
    if not count:
        return []
    cases = critique_cases(truths, count, seed)
    wrong = [one for one in cases if one.kind == "support" and one.label != FULLY]
    wrong = [one for one in wrong if one.output != DECLINED]
    return [_asked(one.instruction, one.output) for one in wrong[:count]]


def _answer(truth: Truth, sentences: int) -> str:
    """Return the sentence with the answer and those after it, up to `sentences` in all."""
    if not truth.gold:
        return DECLINED
    gold = truth.gold[0]
    if len(gold.sentence) > _LONGEST:
        return gold.answer
    every = sentences_of(gold.passage.text)
    place = next((n for n, one in enumerate(every) if gold.sentence.startswith(one)), None)
    following = [] if place is None else every[place + 1 : place + sentences]
    return " ".join([gold.sentence, *following])
