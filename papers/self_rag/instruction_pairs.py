"""Instructions and outputs from questions whose truth is known: where Alg. 2 begins.

kind       instruction                                    output
---------- ---------------------------------------------- ------------------------------------------
question   the question                                   the sentence with the answer, and perhaps
                                                          those that follow it
statement  is this statement correct?                     true, or false where another answer of the
                                                          same form stands in the answer's place
choice     which of four candidates answers the question? the letter of the answer
long       a question that may want a long answer         at least two sentences, if there are two
task       one that holds all it needs                    what was asked for

The instructions of the second to fourth are those of the evaluated tasks (`crag.papers.tasks`).
"""

import random
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from crag.answering.outcome import DECLINED
from crag.papers.self_rag.critique_rules import critique_cases
from crag.papers.self_rag.generator_data import Pair
from crag.papers.self_rag.self_contained import self_contained
from crag.papers.self_rag.truths import Truth
from crag.papers.tasks import profile_of
from crag.reflection_tokens import FULLY
from crag.text.sentences import sentences_of

InstructionKind = Literal["question", "statement", "choice", "long"]
KINDS: tuple[InstructionKind, ...] = get_args(InstructionKind)
_LONGEST = 400
"""Characters of a sentence that is used as an output; above it the answer alone is used."""
_LETTERS = "ABCD"


def instruction_pairs(  # noqa: PLR0913 - the shares of what is made
    truths: Sequence[Truth],
    count: int,
    *,
    without_retrieval: float = 0.2,
    declined: float = 0.0,
    unsupported: float = 0.0,
    kinds: Sequence[InstructionKind] = ("question",),
    sentences: int = 1,
    seed: int = 0,
) -> list[Pair]:
    """Return `count` pairs, or fewer if there are not so many questions.

    Of all pairs, the share `without_retrieval` are tasks that hold all they need, the share
    `declined` are answerable questions that are declined (for the passages that do not answer
    them), and the share `unsupported` state another number, date or name than the passage, or more
    than it holds. The others are of all `kinds` in turn, where a question allows its kind; its
    output has up to `sentences`, and is `DECLINED` where no passage holds the answer.
    """
    draw = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    count = min(count, round(len(truths) / (1 - without_retrieval)))
    tasks, refusals, wrong = (round(count * s) for s in (without_retrieval, declined, unsupported))
    rest = max(0, count - tasks - refusals - wrong)
    order = draw.sample(truths, k=len(truths))
    pairs = list(_of_kinds(order[:rest], kinds, sentences, draw))
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


def _of_kinds(
    truths: Sequence[Truth], kinds: Sequence[InstructionKind], sentences: int, draw: random.Random
) -> Iterator[Pair]:
    answers = [gold.answer for truth in truths for gold in truth.gold[:1]]
    for place, truth in enumerate(truths):
        match kinds[place % len(kinds)] if truth.gold else "question":
            case "statement":
                yield _statement(truth, answers, draw)
            case "choice":
                yield _choice(truth, answers, draw)
            case "long":
                output = _answer(truth, max(2, sentences))
                yield _posed("asqa", truth, "long", truth.question, output)
            case _:
                yield _asked(truth.question, _answer(truth, sentences))


def _asked(question: str, output: str) -> Pair:
    return Pair(instruction=question, output=output, dataset_name="question")


def _posed(task: str, truth: Truth, kind: InstructionKind, shown: str, output: str) -> Pair:
    return Pair(
        instruction=profile_of(task).instruction_for("").partition("#")[0].strip(),
        input=shown, output=output, dataset_name=kind, question=truth.question,
    )  # fmt: skip


def _statement(truth: Truth, answers: Sequence[str], draw: random.Random) -> Pair:
    gold = truth.gold[0]
    others = [one for one in answers if one.lower() not in gold.passage.text.lower()]
    is_true = gold.answer not in gold.sentence or not others or draw.random() < 0.5  # noqa: PLR2004
    sentence = gold.sentence
    if not is_true:
        sentence = sentence.replace(gold.answer, draw.choice(others), 1)
    return _posed("pubhealth", truth, "statement", sentence, str(is_true).lower())


def _choice(truth: Truth, answers: Sequence[str], draw: random.Random) -> Pair:
    gold = truth.gold[0]
    others = sorted({one for one in answers if one.lower() not in gold.passage.text.lower()})
    if len(others) < len(_LETTERS) - 1:
        return _asked(truth.question, _answer(truth, 1))
    candidates = [gold.answer, *draw.sample(others, k=len(_LETTERS) - 1)]
    draw.shuffle(candidates)
    listed = (f"{letter}: {one}" for letter, one in zip(_LETTERS, candidates, strict=True))
    right = _LETTERS[candidates.index(gold.answer)]
    return _posed("arc", truth, "choice", "\n".join([truth.question, *listed]), right)


def _unsupported(truths: Sequence[Truth], count: int, seed: int) -> list[Pair]:
    if not count:
        return []
    cases = critique_cases(truths, count, seed).cases
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
