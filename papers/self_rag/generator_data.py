"""Data for a generator: pairs, into whose outputs passages and tokens are inserted (Alg. 2).

kind       instruction                 output
---------- --------------------------- -----------------------------------------------------------
question   the question                the sentence with the answer, and perhaps those after it
task       one that holds all it needs what was asked for
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field

from crag.answering.outcome import DECLINED
from crag.errors import DataError
from crag.papers.files import read_records
from crag.papers.self_rag.critique_cases import Case, shown
from crag.papers.self_rag.critique_rules import critique_cases, self_contained
from crag.papers.self_rag.reflective_text import fault_of
from crag.papers.self_rag.truths import Truth
from crag.parts import Passage
from crag.reflection.prompt_format import passage_block
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    without_tokens,
)
from crag.text.sentences import sentences_of

_SHORT = 30
"""Of an output with more than two sentences, those with fewer characters are copied as they are."""
_FEW = 2
_LONGEST = 400
"""Characters of a sentence that is used as an output; above it the answer alone is used."""


class Pair(BaseModel):
    """An instruction and the output that carries it out, before any token is inserted."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, coerce_numbers_to_str=True, use_attribute_docstrings=True
    )

    instruction: str = Field(min_length=1)
    input: str = ""
    output: str
    id: str = ""
    dataset_name: str = ""
    """What kind of instruction it is, such as `nq` in the released data."""

    @property
    def asked(self) -> str:
        """The instruction with its input."""
        return (
            f"{self.instruction}\n\n## Input:\n\n{self.input}" if self.input else self.instruction
        )


class ReflectiveRecord(BaseModel):
    """What a generator learns from: the output with its tokens and passages.

    The fields are those of the released data, of which `dataset_name` tells.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)

    instruction: str = Field(min_length=1)
    output: str
    input: str = ""
    id: str = ""
    dataset_name: str = ""

    @property
    def asked(self) -> str:
        """The instruction with its input, as the generator's prompt shows them."""
        return f"{self.instruction}\n\n### Input:\n{self.input}" if self.input else self.instruction

    @property
    def fault(self) -> str:
        """What is wrong with its tokens, in a few words; empty if nothing is."""
        return fault_of(self.output, released=bool(self.dataset_name))


def read_reflective(path: Path) -> list[ReflectiveRecord]:
    """Read records of a generator, ours or the released ones.

    Raises:
        DataError: a line is no record, or its tokens are in an illegal order.
    """
    records = read_records(path, ReflectiveRecord)
    for number, record in enumerate(records, start=1):
        if record.fault:
            raise DataError(path, record.fault, number)
    return records


class Judging(Protocol):
    """What is needed of a critic; `crag.papers.self_rag.critic.Critic` has it."""

    def labels(self, cases: Sequence[Case]) -> list[str]:
        """Return the likeliest label of each case."""
        ...


Retrieve = Callable[[str], Sequence[Passage]]
"""Passages for a query, best first."""


class DataRules(BaseModel):
    """What is kept; the shares are drawn for each record by its own seed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    passages: int = Field(default=10, ge=1, le=100)
    """Passages that are critiqued for each sentence."""
    keep_without_retrieval: float = Field(default=0.4, ge=0, le=1)
    """Share of the records without retrieval that is kept (released code)."""
    irrelevant: float = Field(default=0.1, ge=0, le=1)
    """Share of the sentences that are given an irrelevant passage although a relevant one is
    there, so that Irrelevant is learned."""
    unsupported: float = Field(default=0.0, ge=0, le=1)
    """Share of the sentences that no passage supports which are given the first relevant one, so
    that No support is learned; 0.25 in the released code, never in the paper. A sentence that
    declines is not among them: it is right where no passage is relevant."""
    seed: int = Field(default=0, ge=0, lt=2**31)


class Made(NamedTuple):
    """All records that are kept, and what was rejected."""

    records: list[ReflectiveRecord]
    rejected: dict[str, int]
    """Pairs without a record, counted by reason."""


class Rejected(Exception):  # noqa: N818 - a pair without a record, no failure
    """A pair of which no record is made; the message is the reason."""


def generator_data(
    pairs: Sequence[Pair], critic: Judging, retrieve: Retrieve, rules: DataRules
) -> Made:
    """Make a record of each pair, or reject it for a reason.

    The same pair becomes the same record, whatever was made before it. Equal pairs are used once.
    """
    distinct = {(pair.asked, pair.output): pair for pair in pairs}
    kept: list[ReflectiveRecord] = []
    rejected: Counter[str] = Counter()
    for pair in distinct.values():
        try:
            output = reflective_output(pair, critic, retrieve, rules)
            kept.append(ReflectiveRecord(instruction=pair.asked, output=output))
        except Rejected as reason:
            rejected[str(reason)] += 1
    if len(pairs) > len(distinct):
        rejected["repeated"] = len(pairs) - len(distinct)
    return Made(kept, dict(rejected))


def reflective_output(pair: Pair, critic: Judging, retrieve: Retrieve, rules: DataRules) -> str:
    """Return the output of a pair with tokens and passages.

    Raises:
        Rejected: nothing can be made of it, or the result is not well-formed.
    """
    asked, output = pair.asked, pair.output.strip()
    if not output:
        raise Rejected("an output without a sentence")
    if without_tokens(output) != output:
        raise Rejected("an output with reflection tokens of its own")
    draw = random.Random(f"{rules.seed}-{asked}-{output}")  # noqa: S311 - a choice, no secret
    begin, utility = critic.labels(
        [
            Case(kind="retrieve", instruction=asked),
            Case(kind="utility", instruction=asked, output=output),
        ]
    )
    if begin == NO_RETRIEVAL:
        if draw.random() >= rules.keep_without_retrieval:
            raise Rejected("without retrieval, not drawn")
        whole = f"{NO_RETRIEVAL} {output}{utility}"
    else:
        whole = _Writer(asked, critic, retrieve, rules, draw).written(output) + utility
    fault = fault_of(whole)
    if fault:
        raise Rejected(fault)
    return whole


class _Writer(NamedTuple):
    """Writes the output of one instruction with passages and tokens."""

    asked: str
    critic: Judging
    retrieve: Retrieve
    rules: DataRules
    draw: random.Random

    def written(self, output: str) -> str:
        """Return the sentences, each after its Retrieve token; short ones of many are copied.

        The first one always retrieves: the critic has said so of the instruction.
        """
        sentences = sentences_of(output)
        evidence = shown(self._found(output)[0])
        written = ""
        for place, sentence in enumerate(sentences):
            need, before = RETRIEVAL, " ".join(sentences[:place])
            if place and len(sentences) > _FEW and len(sentence) < _SHORT:
                need = ""
            elif place:
                fields = {"preceding": before, "evidence": evidence, "output": sentence}
                case = Case(kind="retrieve_next", instruction=self.asked, **fields)
                (need,) = self.critic.labels([case])
            if need == RETRIEVAL:
                written += self._critiqued(before, sentence, self._found(sentence))
            else:
                written += f"{need} {sentence}"
        return written

    def _found(self, text: str) -> Sequence[Passage]:
        found = [one for one in self.retrieve(f"{self.asked} {text}") if one.text.strip()]
        if not found:
            raise Rejected("the index finds nothing")
        return found[: self.rules.passages]

    def _critiqued(self, before: str, sentence: str, passages: Sequence[Passage]) -> str:
        """Return a sentence with the passage chosen for it, and what the critic says of both.

        The first relevant passage that supports it fully or partially; without one, or for a small
        share, a passage drawn from the irrelevant ones, or from all if there are none (Self-RAG,
        Appendix on data creation).
        """
        fields_of = [{"instruction": self.asked, "evidence": shown(one)} for one in passages]
        relevance = self.critic.labels([Case(kind="relevance", **one) for one in fields_of])
        relevant = [place for place, label in enumerate(relevance) if label == RELEVANT]
        bad = [place for place, label in enumerate(relevance) if label == IRRELEVANT]
        # IsSup is asked of relevant passages alone: of the others it decides nothing.
        fields = {"preceding": before, "output": sentence}
        cases = [Case(kind="support", **fields, **fields_of[place]) for place in relevant]
        support = dict(zip(relevant, self.critic.labels(cases), strict=True))
        good = [place for place in relevant if support[place] in {FULLY, PARTIALLY}]
        rules, draw = self.rules, self.draw
        if good and not (bad and draw.random() < rules.irrelevant):
            chosen = good[0]
        elif relevant and not good and sentence != DECLINED and draw.random() < rules.unsupported:
            chosen = relevant[0]
        else:
            chosen = draw.choice(bad or list(range(len(passages))))
        # The space belongs to the sentence, as in the vocabularies that know words with one before.
        text = f"{passage_block(passages[chosen])}{relevance[chosen]} {sentence}"
        return text + support.get(chosen, "")


def label_shares(records: Sequence[ReflectiveRecord]) -> Mapping[str, int]:
    """Count in how many records each Retrieve and IsRel token occurs."""
    tokens = (RETRIEVAL, NO_RETRIEVAL, CONTINUE, RELEVANT, IRRELEVANT)
    return {token: sum(token in one.output for one in records) for token in tokens}


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
