"""Data for a generator: insert passages and the critic's tokens into outputs (Self-RAG, Alg. 2)."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field

from crag.answering.outcome import DECLINED
from crag.errors import DataError
from crag.papers.loading.records import Ledger, read_records
from crag.papers.self_rag.critique_cases import Case, shown
from crag.papers.self_rag.reflective_text import fault_of
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
    question: str = ""
    """The question whose truth says what supports the output, if the instruction is another."""

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


def generator_data(  # noqa: PLR0913, PLR0917 - what makes records, and where they are kept
    pairs: Sequence[Pair],
    critic: Judging,
    retrieve: Retrieve,
    rules: DataRules,
    ledger: Ledger,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Made:
    """Make a record of each pair, or reject it for a reason; what the ledger holds is not repeated.

    The same pair becomes the same record, whatever was made before it. Equal pairs are used once.
    """
    distinct = {f"{pair.asked}\n\n{pair.output}": pair for pair in pairs}
    kept: list[ReflectiveRecord] = []
    rejected: Counter[str] = Counter()
    for done, (key, pair) in enumerate(distinct.items(), start=1):
        if key not in ledger.made:
            try:
                ledger.add(key, {"output": reflective_output(pair, critic, retrieve, rules)})
            except Rejected as reason:
                ledger.add(key, {"problem": str(reason)})
        made = ledger.made[key]
        if "output" in made:
            kept.append(ReflectiveRecord(instruction=pair.asked, output=made["output"]))
        else:
            rejected[made["problem"]] += 1
        progress(done, len(distinct))
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
        whole = _with_passages(asked, output, critic, retrieve, rules, draw) + utility
    fault = fault_of(whole)
    if fault:
        raise Rejected(fault)
    return whole


def _with_passages(  # noqa: PLR0913, PLR0917 - what one output needs
    asked: str,
    output: str,
    critic: Judging,
    retrieve: Retrieve,
    rules: DataRules,
    draw: random.Random,
) -> str:
    sentences = sentences_of(output)
    first = _passages_for(retrieve, f"{asked} {output}", rules)
    needs = _needs(asked, sentences, first[0], critic)
    written = ""
    for place, (sentence, need) in enumerate(zip(sentences, needs, strict=True)):
        if need == RETRIEVAL:
            passages = _passages_for(retrieve, f"{asked} {sentence}", rules)
            before = " ".join(sentences[:place])
            written += _critiqued(asked, before, sentence, passages, critic, rules, draw)
        else:
            written += f"{need} {sentence}"
    return written


def _passages_for(retrieve: Retrieve, query: str, rules: DataRules) -> Sequence[Passage]:
    """Return the passages that an index finds for a query, as many as the rules say.

    Raises:
        Rejected: it finds none.
    """
    passages = [one for one in retrieve(query) if one.text.strip()][: rules.passages]
    if not passages:
        raise Rejected("the index finds nothing")
    return passages


def _needs(asked: str, sentences: Sequence[str], evidence: Passage, critic: Judging) -> list[str]:
    """Return the Retrieve token of each sentence; empty where it is copied as it is.

    The first one always retrieves: the critic has said so of the instruction.
    """
    later = range(1, len(sentences))
    long = [place for place in later if not _is_skipped(sentences[place], sentences)]
    cases = [
        Case(
            kind="retrieve_next", instruction=asked, evidence=shown(evidence),
            preceding=" ".join(sentences[:place]), output=sentences[place],
        )
        for place in long
    ]  # fmt: skip
    found = dict(zip(long, critic.labels(cases), strict=True)) if cases else {}
    return [RETRIEVAL, *(found.get(place, "") for place in later)]


def _is_skipped(sentence: str, sentences: Sequence[str]) -> bool:
    """Return whether a sentence is so short beside others that it is copied without tokens."""
    return len(sentences) > _FEW and len(sentence) < _SHORT


def _critiqued(  # noqa: PLR0913, PLR0917 - what one sentence needs
    asked: str,
    before: str,
    sentence: str,
    passages: Sequence[Passage],
    critic: Judging,
    rules: DataRules,
    draw: random.Random,
) -> str:
    """Return a sentence with the passage that is chosen for it, and what the critic says of both.

    The first relevant passage that supports it fully or partially; without one, or for a small
    share, a passage drawn from the irrelevant ones, or from all if there are none (Self-RAG,
    Appendix on data creation).
    """
    fields_of = [{"instruction": asked, "evidence": shown(one)} for one in passages]
    relevance = critic.labels([Case(kind="relevance", **fields) for fields in fields_of])
    relevant = [place for place, label in enumerate(relevance) if label == RELEVANT]
    # IsSup is asked of relevant passages alone: of the others it decides nothing.
    judged = critic.labels(
        [Case(kind="support", preceding=before, output=sentence, **fields_of[p]) for p in relevant]
    )
    support = dict(zip(relevant, judged, strict=True))
    good = [place for place in relevant if support[place] in {FULLY, PARTIALLY}]
    bad = [place for place, label in enumerate(relevance) if label == IRRELEVANT]
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
