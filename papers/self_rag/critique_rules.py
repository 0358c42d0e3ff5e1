"""Data for a critic without a model: labels by rule from questions whose truth is known.

kind           label                      what is shown
-------------- -------------------------- ---------------------------------------------------------
retrieve       Retrieval                  a question
               No Retrieval               a task that holds all it needs
retrieve_next  Continue to Use Evidence   the next sentence of the evidence
               Retrieval                  a sentence of another passage
               No Retrieval               a remark that states nothing
relevance      Relevant                   a passage that holds the answer
               Irrelevant                 a passage of the same article or question without it
support        Fully supported            the sentence with the answer, or the answer
               Partially supported        that, joined with what the passage does not hold
               No support / Contradictory the same with another number, date or name in the place of
                                          the answer; words that decline to answer
utility        5                          the sentence with the answer
               4                          the answer alone
               3                          the first half of a long answer
               2                          another sentence of the passage; words that decline
               1                          a sentence about something else
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from crag.answering.outcome import DECLINED
from crag.papers.evaluator.pairs import folded
from crag.papers.self_rag.critique_cases import KINDS, LABELS, Kind, LabelledCase, shown
from crag.papers.self_rag.truths import Gold, Truth, read_truths
from crag.parts import Passage
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
from crag.text.sentences import sentences_of

RULE = "rule"
_SHORTEST, _LONGEST = 25, 400
"""Characters of a sentence that is used as an output."""
_HALVES = 4
"""Fewest words of an answer whose first half is used."""
_SAMPLE = 5000
"""Questions from which wrong answers and sentences about other things are drawn."""
_DECLINING = 0.15
"""Share of the unsupported and of the useless outputs that decline."""
_YEARS = range(1000, 2101)
_DAYS = range(1, 32)
_NUMBER = re.compile(r"\d[\d,]*")
_REMARKS = (
    "I hope this helps.",
    "Let me know if you have any other question.",
    "That is the short answer.",
    "Here is what I can say.",
    "In short, that is what there is to say.",
    "Thank you for asking.",
    "It is an interesting question.",
    "This is worth a closer look.",
    "Let us look at it together.",
    "I will explain this step by step.",
    "Feel free to ask for more.",
    "Now to your question.",
    "There is more to say, but this is the point.",
    "Here is a summary.",
    "That should answer your question.",
)


def critique_cases(
    truths: Sequence[Truth], each: int, seed: int = 0, *, most: Mapping[Kind, int] | None = None
) -> list[LabelledCase]:
    """Return at most `each` labelled cases for each label of a kind; `most` sets a kind apart.

    All labels of a kind are equally frequent: the rarest decides, and a kind of which a label could
    not be made is left out. Equal cases are kept once. The order is random.
    """
    draw = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    limits: Mapping[Kind, int] = dict.fromkeys(KINDS, each) | dict(most or {})
    buckets: dict[tuple[Kind, str], list[LabelledCase]] = {
        (kind, label): [] for kind in KINDS for label in LABELS[kind]
    }
    known: set[str] = set()
    for case in _Maker(truths, draw).all(limits["retrieve"], seed):
        bucket = buckets[case.kind, case.label]
        if case.key not in known and len(bucket) < limits[case.kind]:
            known.add(case.key)
            bucket.append(case)
        if all(len(cases) == limits[kind] for (kind, _), cases in buckets.items()):
            break
    kept: list[LabelledCase] = []
    for kind in KINDS:
        of_kind = [buckets[kind, label] for label in LABELS[kind]]
        kept += [case for cases in of_kind for case in cases[: min(map(len, of_kind))]]
    draw.shuffle(kept)
    return kept


def unleaked(
    data: Sequence[Path], development: Sequence[Path], seed: int
) -> tuple[list[Truth], int]:
    """Read questions, and leave out what the development files have; return how many that were."""
    truths = [truth for path in data for truth in read_truths(path, seed)]
    evaluation = [truth for path in development for truth in read_truths(path, seed)]
    return without_leaks(truths, evaluation)


def without_leaks(truths: Sequence[Truth], evaluation: Iterable[Truth]) -> tuple[list[Truth], int]:
    """Leave out questions that `evaluation` has too, or whose article holds an answer there.

    Returns the others, and how many were left out.
    """
    questions: set[str] = set()
    titles: set[str] = set()
    for truth in evaluation:
        questions.add(folded(truth.question))
        titles |= {folded(gold.passage.title) for gold in truth.gold}
    titles.discard("")
    kept = [
        truth
        for truth in truths
        if folded(truth.question) not in questions
        and not any(
            folded(passage.title) in titles
            for passage in (*(gold.passage for gold in truth.gold), *truth.others)
        )
    ]
    return kept, len(truths) - len(kept)


def _case(kind: Kind, label: str, instruction: str, **fields: str) -> LabelledCase:
    return LabelledCase(kind=kind, instruction=instruction, label=label, source=RULE, **fields)


class _Maker:
    """Makes the cases of one question after the other."""

    def __init__(self, truths: Sequence[Truth], draw: random.Random) -> None:
        self._truths, self._draw = truths, draw
        sample = draw.sample(truths, k=min(len(truths), _SAMPLE))
        golds = [gold for truth in sample for gold in truth.gold[:1]]
        self._elsewhere = [
            (gold.passage.title, gold.sentence) for gold in golds if _is_usable(gold.sentence)
        ]
        self._answers: Mapping[tuple[bool, int], list[str]] = defaultdict(list)
        for gold in golds:
            self._answers[_shape(gold.answer)].append(gold.answer)

    def all(self, tasks: int, seed: int) -> Iterator[LabelledCase]:
        """Make all cases: at most `tasks` that need no retrieval, then those of each question."""
        sentences = [sentence for _, sentence in self._elsewhere]
        for task in self_contained(sentences, tasks, seed) if sentences else ():
            yield _case("retrieve", NO_RETRIEVAL, task.instruction, group=task.instruction)
        for truth in self._draw.sample(self._truths, len(self._truths)):
            yield from self.cases(truth)

    def cases(self, truth: Truth) -> Iterator[LabelledCase]:
        """Make what can be made of one question."""
        question = truth.question
        group = next((g.passage.title for g in truth.gold if g.passage.title), question)
        yield _case("retrieve", RETRIEVAL, question, group=group)
        for other in truth.others:
            yield _case("relevance", IRRELEVANT, question, evidence=shown(other), group=group)
        for gold in truth.gold[:1]:
            evidence = shown(gold.passage)
            yield _case("relevance", RELEVANT, question, evidence=evidence, group=group)
            for label, output in self._supported(gold):
                yield _case(
                    "support", label, question, evidence=evidence, output=output, group=group
                )
            for label, output in self._useful(gold):
                yield _case("utility", label, question, output=output, group=group)
            for label, before, output in self._next(gold, truth.others):
                yield _case(
                    "retrieve_next", label, question,
                    preceding=before, evidence=evidence, output=output, group=group,
                )  # fmt: skip

    def _supported(self, gold: Gold) -> Iterator[tuple[str, str]]:
        sentence, answer = gold.sentence, gold.answer
        wrong = self._wrong(gold)
        if wrong is None or answer not in sentence:
            return
        if self._draw.random() < 0.5 or not _is_usable(sentence):  # noqa: PLR2004 - a coin
            yield FULLY, answer
            yield PARTIALLY, f"{answer.rstrip('.')} and {wrong}"
            yield NO_SUPPORT, wrong
            return
        yield FULLY, sentence
        declines = self._draw.random() < _DECLINING
        yield NO_SUPPORT, DECLINED if declines else sentence.replace(answer, wrong, 1)
        foreign = self._foreign(gold.passage)
        if foreign is not None:
            both = [sentence, foreign]
            self._draw.shuffle(both)
            yield PARTIALLY, " ".join(both)

    def _useful(self, gold: Gold) -> Iterator[tuple[str, str]]:
        sentence, answer = gold.sentence, gold.answer
        if not _is_usable(sentence):
            return
        grades: dict[int, str | None] = {5: sentence, 1: self._foreign(gold.passage)}
        if len(answer) * 2 < len(sentence):
            grades[4] = answer
        words = answer.split()
        if len(words) >= _HALVES:
            grades[3] = " ".join(words[: len(words) // 2])
        rest = [one for one in sentences_of(gold.passage.text) if _is_usable(one)]
        rest = [one for one in rest if answer.lower() not in one.lower()]
        if self._draw.random() < _DECLINING:
            rest = [DECLINED]
        grades[2] = self._draw.choice(rest) if rest else None
        yield from ((UTILITY[grade - 1], output) for grade, output in grades.items() if output)

    def _next(self, gold: Gold, others: Sequence[Passage]) -> Iterator[tuple[str, str, str]]:
        sentences = sentences_of(gold.passage.text)
        usable = [i for i in range(1, len(sentences)) if _is_usable(sentences[i])]
        if not usable:
            return
        place = self._draw.choice(usable)
        before = " ".join(sentences[:place][-2:])
        yield CONTINUE, before, sentences[place]
        yield NO_RETRIEVAL, before, self._draw.choice(_REMARKS)
        of_others = [one for other in others for one in sentences_of(other.text)]
        of_others = [one for one in of_others if _is_usable(one) and one not in sentences]
        foreign = self._draw.choice(of_others) if of_others else self._foreign(gold.passage)
        if foreign is not None:
            yield RETRIEVAL, before, foreign

    def _foreign(self, passage: Passage) -> str | None:
        """Draw a sentence about something else."""
        for _ in range(10):
            if not self._elsewhere:
                break
            title, sentence = self._draw.choice(self._elsewhere)
            if title != passage.title and sentence not in passage.text:
                return sentence
        return None

    def _wrong(self, gold: Gold) -> str | None:
        """Draw a wrong answer of the same form that the passage does not hold."""
        number = _NUMBER.search(gold.answer)
        alike = self._answers[_shape(gold.answer)]
        for _ in range(10):
            if number:
                other = _other_number(number.group(), self._draw)
                wrong = gold.answer[: number.start()] + other + gold.answer[number.end() :]
            elif alike:
                wrong = self._draw.choice(alike)
            else:
                return None
            if wrong.lower() not in gold.passage.text.lower():
                return wrong
        return None


def _is_usable(sentence: str) -> bool:
    return _SHORTEST <= len(sentence) <= _LONGEST


def _shape(answer: str) -> tuple[bool, int]:
    """Return whether an answer looks like a name, and its number of words up to four."""
    return answer[:1].isupper(), min(len(answer.split()), 4)


def _other_number(number: str, draw: random.Random) -> str:
    """Return another number of the same form and size; days stay days, years stay years."""
    value = int(number.replace(",", ""))
    if value in _YEARS and "," not in number:
        return str(value + draw.choice((-1, 1)) * draw.randrange(1, 40))
    if value in _DAYS:
        return str(draw.choice([day for day in _DAYS if day != value]))
    changed = max(0, value + draw.choice((-1, 1)) * draw.randrange(1, max(2, value // 2) + 1))
    return f"{changed:,}" if "," in number else str(changed)


class Task(NamedTuple):
    """An instruction that needs no retrieval, and the output that carries it out."""

    instruction: str
    output: str


def self_contained(sentences: Sequence[str], count: int, seed: int = 0) -> list[Task]:
    """Return `count` tasks that hold all they need, fewer if they repeat.

    They are calculation, and work on a given sentence; `sentences` is not empty.
    """
    draw = random.Random(seed)  # noqa: S311 - made-up tasks, no secret
    made: dict[str, Task] = {}
    for attempt in range(4 * count):
        if len(made) == count:
            break
        task = _MAKERS[attempt % len(_MAKERS)](draw, " ".join(draw.choice(sentences).split()))
        made.setdefault(task.instruction, task)
    return list(made.values())


def _sum(draw: random.Random, _: str) -> Task:
    first, second = draw.randrange(2, 1000), draw.randrange(2, 1000)
    asked = draw.choice(("What is {} plus {}?", "Add {} and {}.", "Calculate {} + {}."))
    return Task(asked.format(first, second), f"{first} + {second} = {first + second}.")


def _product(draw: random.Random, _: str) -> Task:
    first, second = draw.randrange(2, 100), draw.randrange(2, 13)
    asked = draw.choice(("What is {} times {}?", "Multiply {} by {}."))
    return Task(asked.format(first, second), f"{first} × {second} = {first * second}.")


def _capitals(draw: random.Random, sentence: str) -> Task:
    asked = draw.choice(("Write this sentence in capital letters", "Put this into upper case"))
    return Task(f"{asked}: {sentence}", sentence.upper())


def _order(draw: random.Random, sentence: str) -> Task:
    words = sorted({word.strip(".,;:()\"'").lower() for word in sentence.split()} - {""})
    given = words[: draw.randrange(3, 7)]
    draw.shuffle(given)
    asked = draw.choice(("Put these words in alphabetical order", "Sort these words from A to Z"))
    return Task(f"{asked}: {', '.join(given)}", f"{', '.join(sorted(given))}.")


def _count(draw: random.Random, sentence: str) -> Task:
    asked = draw.choice(("How many words does this sentence have?", "Count the words of this:"))
    return Task(f"{asked} {sentence}", f"It has {len(sentence.split())} words.")


def _first(draw: random.Random, sentence: str) -> Task:
    number = draw.randrange(2, 6)
    return Task(
        f"Repeat the first {number} words of this sentence: {sentence}",
        " ".join(sentence.split()[:number]),
    )


_MAKERS: tuple[Callable[[random.Random, str], Task], ...] = (
    _sum, _capitals, _order, _product, _count, _first,
)  # fmt: skip
