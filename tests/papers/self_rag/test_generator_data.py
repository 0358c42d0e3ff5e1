"""Passages and tokens are inserted into outputs as Alg. 2 says, and checked."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from crag.answering.outcome import DECLINED
from crag.papers.self_rag.critique_cases import Case
from crag.papers.self_rag.generator_data import (
    DataRules,
    Pair,
    Rejected,
    generator_data,
    instruction_pairs,
    label_shares,
    reflective_output,
)
from crag.papers.self_rag.reflective_text import fault_of
from crag.papers.self_rag.truths import read_truths
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
from tests.trained import articles, written

BEST = UTILITY[4]
EVERY = DataRules(keep_without_retrieval=1.0, irrelevant=0.0)


class ByWords:
    """A critic that goes by words: a passage is relevant if it names the kettle."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def labels(self, cases: Sequence[Case]) -> list[str]:
        self.cases += cases
        return [self._label(case) for case in cases]

    def _label(self, case: Case) -> str:
        match case.kind:
            case "retrieve":
                return NO_RETRIEVAL if case.instruction.startswith("Add") else RETRIEVAL
            case "retrieve_next":
                needs = {"kettle": RETRIEVAL, "same": CONTINUE}
                return next((t for w, t in needs.items() if w in case.output), NO_RETRIEVAL)
            case "relevance":
                return RELEVANT if "kettle" in case.evidence else IRRELEVANT
            case "support":
                found = {"red": FULLY, "old": PARTIALLY}
                return next((t for w, t in found.items() if w in case.evidence), NO_SUPPORT)
            case "utility":
                return BEST


def finding(*texts: str) -> Callable[[str], list[Passage]]:
    return lambda _query: [Passage("Page", text) for text in texts]


def output(said: str, *texts: str, rules: DataRules = EVERY, asked: str = "Which kettle?") -> str:
    pair = Pair(instruction=asked, output=said)
    return reflective_output(pair, ByWords(), finding(*texts), rules)


def shown(text: str) -> str:
    return f"{RETRIEVAL}<paragraph>Page\n{text}</paragraph>"


def test_the_highest_passage_that_supports_is_put_before_the_sentence() -> None:
    made = output("It is red.", "Rain fell.", "An old kettle.", "A red kettle.")
    assert made == f"{shown('An old kettle.')}{RELEVANT} It is red.{PARTIALLY}{BEST}"


def test_without_support_an_irrelevant_passage_is_shown_and_nothing_said_of_support() -> None:
    made = output("It is red.", "A kettle.", "Rain fell.")
    assert made == f"{shown('Rain fell.')}{IRRELEVANT} It is red.{BEST}"
    made = output("It is red.", "A kettle.")
    assert made == f"{shown('A kettle.')}{RELEVANT} It is red.{NO_SUPPORT}{BEST}"


def test_a_share_of_the_sentences_has_an_irrelevant_passage() -> None:
    rules = DataRules(irrelevant=1.0)
    assert IRRELEVANT in output("It is red.", "A red kettle.", "Rain fell.", rules=rules)
    assert IRRELEVANT not in output("It is red.", "A red kettle.", rules=rules)


def test_later_sentences_retrieve_continue_or_do_neither() -> None:
    said = (
        "The first one is red. So says the kettle that stands near it. This is on the very same "
        "page as well. That is all there is to be said of it. Good bye."
    )
    made = output(said, "A red kettle.")
    passage = shown("A red kettle.")
    assert made == (
        f"{passage}{RELEVANT} The first one is red.{FULLY}"
        f"{passage}{RELEVANT} So says the kettle that stands near it.{FULLY}"
        f"{CONTINUE} This is on the very same page as well."
        f"{NO_RETRIEVAL} That is all there is to be said of it. Good bye.{BEST}"
    )
    assert fault_of(made) == ""


@pytest.mark.parametrize(
    ("said", "texts", "reason"),
    [
        (" ", ("A red kettle.",), "an output without a sentence"),
        ("It is red.", (), "the index finds nothing"),
        ("It is red.", (" ",), "the index finds nothing"),
        ("It is [Relevant] red.", ("A red kettle.",), "tokens of its own"),
        ("It is [Utility:6] red.", ("A red kettle.",), "unknown token"),
    ],
)
def test_pairs_of_which_nothing_can_be_made_are_rejected(
    said: str, texts: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(Rejected, match=reason):
        output(said, *texts)


PASSAGE = "[Retrieval]<paragraph>T\nx</paragraph>"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"{PASSAGE}[Relevant] A.{FULLY}{BEST}", ""),
        (f"{PASSAGE}[Irrelevant] A.{BEST}", ""),
        (f"[No Retrieval] A.{CONTINUE} B.{BEST}", ""),
        (f"{PASSAGE}[Relevant] A.{FULLY}", "order"),
        (f"{PASSAGE}[Relevant] A.{BEST}", "order"),
        (f"{PASSAGE}[Irrelevant] A.{FULLY}{BEST}", "order"),
        (f"{PASSAGE}[Relevant]{FULLY}{BEST}", "order"),
        (f"[Retrieval][Relevant] A.{FULLY}{BEST}", "order"),
        (f"A.{BEST}", "order"),
        ("", "order"),
        (f"[No Retrieval] A.</s>{BEST}", "order"),
        ("[No Retrieval] A.[Utility:6]", "unknown token [Utility:6]"),
        (f"{PASSAGE}[Relevant] A.[Supported]{FULLY}{BEST}", "unknown token [Supported]"),
        (f"[Retrieval]<Paragraph>x</Paragraph>[Relevant] A.{FULLY}{BEST}", "unknown token <Para"),
        (f"Sure.{PASSAGE}[Relevant]A.{FULLY}{BEST}", "order"),
        (f"{PASSAGE.replace('x', '[Supported by] x')}[Relevant] A [1] B.{FULLY}{BEST}", ""),
    ],
)
def test_only_legal_orders_have_no_fault(text: str, fault: str) -> None:
    assert (fault in fault_of(text)) if fault else fault_of(text) == ""


PAIRS = [
    *(Pair(instruction=f"Which kettle {n}?", output=f"Number {n} is red.") for n in range(12)),
    *(Pair(instruction=f"Add {n}.", output=f"It is {n}.") for n in range(12)),
    Pair(instruction="Which kettle 0?", output="Number 0 is red."),
    Pair(instruction="Which?", output="  "),
]


def test_records_and_rejections_add_up() -> None:
    made = generator_data(PAIRS, ByWords(), finding("A red kettle."), DataRules())
    assert len(made.records) + sum(made.rejected.values()) == len(PAIRS)
    assert made.rejected["repeated"] == made.rejected["an output without a sentence"] == 1
    dropped = made.rejected["without retrieval, not drawn"]
    assert 0 < dropped < 12
    shares = label_shares(made.records)
    assert shares[RETRIEVAL] == shares[RELEVANT] == 12
    assert shares[NO_RETRIEVAL] == 12 - dropped
    assert all(fault_of(one.output) == "" for one in made.records)


def test_questions_become_pairs_answered_declined_or_without_need(tmp_path: Path) -> None:
    bare = {"title": "A", "text": "It rains.", "questions": [{"question": "Why?", "answers": []}]}
    truths = read_truths(written(tmp_path / "truths.jsonl", [*articles(24), bare]))
    pairs = {one.instruction: one.output for one in instruction_pairs(truths, 30)}
    assert len(pairs) == 24 + 6
    assert len(instruction_pairs(truths, 5000)) == 25 + 6
    assert pairs.get("Why?", DECLINED) == DECLINED
    answers = {truth.question: truth.gold[0].answer for truth in truths if truth.gold}
    asked = pairs.keys() & answers.keys()
    assert len(asked) >= 23
    assert all(answers[question] in pairs[question] for question in asked)
