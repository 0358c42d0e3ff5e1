"""Data for a critic: what rules and the truth label, and what is read and left out."""

from collections import Counter
from pathlib import Path

import pytest

from crag.answering.outcome import DECLINED
from crag.papers.self_rag.critique_cases import KINDS, LABELS, Case, Kind, LabelledCase
from crag.papers.self_rag.critique_rules import critique_cases, self_contained, without_leaks
from crag.papers.self_rag.generator_data import DataRules, Pair, reflective_output
from crag.papers.self_rag.reflective_text import fault_of
from crag.papers.self_rag.truths import TruthCritic, read_truths
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

TRUTHS = articles(24)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[LabelledCase]:
    path = written(tmp_path_factory.mktemp("data") / "truths.jsonl", TRUTHS)
    return critique_cases(read_truths(path), each=12)


def of(cases: list[LabelledCase], kind: str, label: str) -> list[LabelledCase]:
    found = [case for case in cases if (case.kind, case.label) == (kind, label)]
    assert found
    return found


def test_all_labels_of_a_kind_are_equally_frequent(cases: list[LabelledCase]) -> None:
    counts = Counter((case.kind, case.label) for case in cases)
    assert {kind for kind, _ in counts} == set(KINDS)
    for kind in KINDS:
        assert len({counts[kind, label] for label in LABELS[kind]}) == 1
    assert len({case.key for case in cases}) == len(cases)


def test_what_is_called_supported_stands_in_the_evidence_and_what_is_not_does_not(
    cases: list[LabelledCase],
) -> None:
    assert all(case.output in case.evidence for case in of(cases, "support", FULLY))
    assert not any(case.output in case.evidence for case in of(cases, "support", NO_SUPPORT))


def test_relevance_is_whether_the_answer_stands_in_a_passage_of_the_same_article(
    cases: list[LabelledCase],
) -> None:
    year = {row["questions"][0]["question"]: row["questions"][0]["answers"][0]["text"]
            for row in TRUTHS}  # fmt: skip
    for case in of(cases, "relevance", RELEVANT):
        assert year[case.instruction] in case.evidence
    for case in of(cases, "relevance", IRRELEVANT):
        assert year[case.instruction] not in case.evidence
        assert case.evidence.startswith(case.group)


def test_the_evidence_goes_on_exactly_where_it_is_said_to(cases: list[LabelledCase]) -> None:
    for case in of(cases, "retrieve_next", CONTINUE):
        assert case.preceding + " " + case.output in case.evidence
    for label in (RETRIEVAL, NO_RETRIEVAL):
        for case in of(cases, "retrieve_next", label):
            assert case.output not in case.evidence


def test_questions_and_articles_of_the_evaluation_are_left_out(tmp_path: Path) -> None:
    truths = read_truths(written(tmp_path / "all.jsonl", TRUTHS))
    other = [{**TRUTHS[4], "title": "elsewhere"}, TRUTHS[6]]
    evaluation = read_truths(written(tmp_path / "dev.jsonl", other))
    kept, leaks = without_leaks(truths, evaluation)
    titles = {gold.passage.title for truth in kept for gold in truth.gold}
    assert TRUTHS[6]["title"] not in titles
    assert TRUTHS[4]["questions"][0]["question"] not in {truth.question for truth in kept}
    assert len(kept) + leaks == len(truths) == len(TRUTHS)


def test_three_kinds_of_files_are_read(tmp_path: Path) -> None:
    rows = [
        {"question": "When?", "passages": [
            {"title": "A", "text": "In 1901 it was.", "answers": [{"text": "1901", "start": 9}]},
            {"title": "A", "text": "It is old.", "answers": []}]},
        {"question": "Who?", "answers": ["Ada"], "documents": [
            {"title": "B", "text": "It was Ada.", "answer": True},
            {"title": "B", "text": "Ada is a name.", "answer": False}]},
        {"title": "C", "text": "It rains.", "questions": [{"question": "Why?", "answers": []}]},
    ]  # fmt: skip
    when, who, why = read_truths(written(tmp_path / "mixed.jsonl", rows))
    assert (when.gold[0].answer, when.gold[0].start) == ("1901", 3)  # The offset was wrong.
    assert [passage.text for passage in when.others] == ["It is old."]
    assert (who.gold[0].sentence, who.others[0].text) == ("It was Ada.", "Ada is a name.")
    assert (why.gold, why.others[0].text) == ((), "It rains.")


def test_tasks_that_need_no_retrieval_are_carried_out_rightly() -> None:
    tasks = self_contained(["The kettle is red.", "Rain fell on Malta."], 30)
    assert len({task.instruction for task in tasks}) == len(tasks) == 30
    for task in tasks:
        if task.instruction.startswith("What is ") and " plus " in task.instruction:
            left, right = task.instruction[8:-1].split(" plus ")
            assert task.output.endswith(f"= {int(left) + int(right)}.")
        if "capital letters" in task.instruction:
            assert task.output.lower() in task.instruction.lower()


QUESTION = "When was the kettle of Lugano built?"
SENTENCE = "The kettle of Lugano was built in 1700 by the river."
GOLD = f"Kettle of Lugano\n{SENTENCE} It stands near the old museum of the town."
OTHER = "Kettle of Lugano\nRain fell on the kettle for forty nights."


@pytest.fixture(scope="module")
def critic(tmp_path_factory: pytest.TempPathFactory) -> TruthCritic:
    text = GOLD.partition("\n")[2]
    row = {
        "title": "Kettle of Lugano",
        "text": text,
        "questions": [
            {"question": QUESTION, "answers": [{"text": "1700", "start": text.index("1700")}]},
            {"question": "Who owns it?", "answers": []},
        ],
    }
    path = tmp_path_factory.mktemp("truth") / "truths.jsonl"
    return TruthCritic(read_truths(written(path, [row])))


@pytest.mark.parametrize(
    ("kind", "instruction", "evidence", "output", "label"),
    [
        ("retrieve", QUESTION, "", "", RETRIEVAL),
        ("retrieve", "Add 2 and 3.", "", "", NO_RETRIEVAL),
        ("retrieve_next", QUESTION, GOLD, SENTENCE, CONTINUE),
        ("retrieve_next", QUESTION, OTHER, SENTENCE, RETRIEVAL),
        ("relevance", QUESTION, GOLD, "", RELEVANT),
        ("relevance", QUESTION, OTHER, "", IRRELEVANT),
        ("relevance", "Who owns it?", GOLD, "", IRRELEVANT),
        ("support", QUESTION, GOLD, SENTENCE, FULLY),
        ("support", QUESTION, GOLD, "1700", FULLY),
        ("support", QUESTION, GOLD, "1700 and 1822", PARTIALLY),
        ("support", QUESTION, GOLD, SENTENCE.replace("1700", "1822"), NO_SUPPORT),
        ("support", QUESTION, GOLD, DECLINED, NO_SUPPORT),
        ("utility", QUESTION, "", SENTENCE, UTILITY[4]),
        ("utility", QUESTION, "", "1700", UTILITY[3]),
        ("utility", QUESTION, "", DECLINED, UTILITY[1]),
    ],
)
def test_labels_are_what_the_passages_hold(
    critic: TruthCritic, kind: Kind, instruction: str, evidence: str, output: str, label: str
) -> None:
    case = Case(kind=kind, instruction=instruction, evidence=evidence, output=output)
    assert critic.labels([case]) == [label]


def test_what_declines_is_put_after_an_irrelevant_passage(critic: TruthCritic) -> None:
    passages = [Passage(*text.split("\n")) for text in (GOLD, OTHER)]
    rules = DataRules(irrelevant=0, unsupported=1)
    pair = Pair(instruction=QUESTION, output=DECLINED)
    made = reflective_output(pair, critic, lambda _query: passages, rules)
    assert IRRELEVANT in made
    assert "Rain fell" in made
    wrong = Pair(instruction=QUESTION, output=SENTENCE.replace("1700", "1822"))
    made = reflective_output(wrong, critic, lambda _query: passages, rules)
    assert made.endswith(f"{NO_SUPPORT}{UTILITY[4]}")
    assert fault_of(made) == ""
