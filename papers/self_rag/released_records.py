"""A generator's records put together as the released program does it, faults included.

What differs from `reflective_output`: no space before a sentence; a short sentence is copied
without tokens wherever it stands, even first; another choice among passages, with rules of its own
for the data sets of the paper; a task's instruction stands before its input without a line break.
"""

import random
from collections.abc import Sequence

from crag.papers.self_rag.critique_cases import Case, shown
from crag.papers.self_rag.generator_data import (
    DataRules,
    Judging,
    Pair,
    Rejected,
    Retrieve,
    is_skipped,
    passages_for,
    usable_output,
)
from crag.parts import Passage
from crag.reflection.prompt_format import passage_block
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

_PARTIALLY_KEPT, _UNSUPPORTED_KEPT, _IRRELEVANT_FOR_NQ, _NQ_KEPT = 0.7, 0.25, 0.25, 0.5
_TASKS = {"nq", "wow", "fever", "tqa", "arc_easy", "arc_hard", "obqa", "qrecc", "race", "asqa"}
"""Data sets whose input alone is searched for, without the task's instruction."""


def released_output(pair: Pair, critic: Judging, retrieve: Retrieve, rules: DataRules) -> str:
    """Return the output of a pair with tokens and passages, as the released program joins them.

    Raises:
        Rejected: the released program would make no record of it.
    """
    asked, output = pair.asked_in("released"), usable_output(pair)
    draw = random.Random(f"{rules.seed}-{asked}-{output}")  # noqa: S311 - a choice, no secret
    begin, utility = critic.labels(
        [
            Case(kind="retrieve", instruction=asked),
            Case(kind="utility", instruction=asked, output=output),
        ]
    )
    if output in {"true", "false"} and utility == UTILITY[0]:
        utility = UTILITY[-1]
    if begin == NO_RETRIEVAL:
        if draw.random() >= rules.keep_without_retrieval:
            raise Rejected("without retrieval, not drawn")
        return f"{NO_RETRIEVAL}{output}{utility}"
    written = _with_passages(pair, asked, output, critic, retrieve, rules, draw)
    if not written:
        raise Rejected("no passage for any sentence")
    if written.startswith(CONTINUE):
        raise Rejected(f"begins with {CONTINUE}")
    if pair.dataset_name == "nq" and NO_RETRIEVAL in written and draw.random() > _NQ_KEPT:
        raise Rejected("nq without retrieval, not drawn")
    return (written + utility).replace("REFUTES", "false").replace("SUPPORTS", "true")


def _with_passages(  # noqa: PLR0913, PLR0917 - what one output needs
    pair: Pair,
    asked: str,
    output: str,
    critic: Judging,
    retrieve: Retrieve,
    rules: DataRules,
    draw: random.Random,
) -> str:
    searched = f"{pair.instruction} {pair.input}".strip()
    if pair.dataset_name in _TASKS and pair.input:
        searched = pair.input
    sentences = sentences_of(output)
    evidence = shown(passages_for(retrieve, f"{searched} {output}", rules)[0])
    written = ""
    for place, sentence in enumerate(sentences):
        if is_skipped(sentence, sentences):
            written += sentence
            continue
        need, before = RETRIEVAL, " ".join(sentences[:place])
        if place:
            case = Case(
                kind="retrieve_next", instruction=asked, preceding=before, evidence=evidence,
                output=sentence,
            )  # fmt: skip
            (need,) = critic.labels([case])
        if need != RETRIEVAL:
            written += need + sentence
            continue
        passages = passages_for(retrieve, f"{searched} {sentence}", rules)
        written += _critiqued(pair, asked, before, sentence, passages, critic, draw)
    return written


def _critiqued(  # noqa: PLR0913, PLR0917 - what one sentence needs
    pair: Pair,
    asked: str,
    before: str,
    sentence: str,
    passages: Sequence[Passage],
    critic: Judging,
    draw: random.Random,
) -> str:
    """Return a sentence with its passage; nothing if the released program drops the sentence.

    Its draw of an irrelevant passage takes a place in the list of those for a place in the list of
    all, so that the passage may be a relevant one.
    """
    fields_of = [{"instruction": asked, "evidence": shown(one)} for one in passages]
    relevance = critic.labels([Case(kind="relevance", **fields) for fields in fields_of])
    support = critic.labels(
        [Case(kind="support", preceding=before, output=sentence, **one) for one in fields_of]
    )
    judged = list(zip(relevance, support, strict=True))
    first = {label: judged.index(label) for label in reversed(judged)}
    bad = relevance.count(IRRELEVANT)
    fully, partially = first.get((RELEVANT, FULLY)), first.get((RELEVANT, PARTIALLY))
    unsupported = first.get((RELEVANT, NO_SUPPORT))
    chosen: int | None = None
    if fully is not None:
        chosen = fully
        if pair.dataset_name == "nq" and bad and draw.random() < _IRRELEVANT_FOR_NQ:
            chosen = draw.randrange(bad)
    elif partially is not None and draw.random() < _PARTIALLY_KEPT:
        chosen = partially
    elif partially is None and unsupported is not None and draw.random() < _UNSUPPORTED_KEPT:
        chosen = unsupported
    elif bad:
        chosen = draw.randrange(bad)
    if chosen is None:
        return ""
    if pair.dataset_name in {"nq", "fever"} and bad:
        chosen = draw.randrange(bad)
    label, supported = judged[chosen]
    if pair.dataset_name in {"nq", "fever", "wow"} and supported == NO_SUPPORT:
        label = IRRELEVANT
    text = f"{passage_block(passages[chosen])}{label}{sentence}"
    return text + supported if label == RELEVANT else text
