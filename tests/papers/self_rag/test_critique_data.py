"""Data for a critic: what the rules make, what a judge makes of it, and what survives a kill."""

import json
from collections import Counter
from pathlib import Path

import pytest

from crag.errors import DataError, TrainingError
from crag.papers.loading.records import Ledger, read_records, write_records
from crag.papers.self_rag.critique_cases import KINDS, LABELS, LabelledCase, critic_prompt
from crag.papers.self_rag.critique_demonstrations import DEMONSTRATIONS, demonstrated
from crag.papers.self_rag.critique_labels import Judgement, label_cases
from crag.papers.self_rag.critique_rules import critique_cases, without_leaks
from crag.papers.self_rag.self_contained import self_contained
from crag.papers.self_rag.truths import read_truths
from crag.prompts import PACKAGED
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    RELEVANT,
    RETRIEVAL,
)
from tests.reflective import articles, written

TRUTHS = articles(24)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[LabelledCase]:
    path = written(tmp_path_factory.mktemp("data") / "truths.jsonl", TRUTHS)
    return critique_cases(read_truths(path), each=12).cases


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


def test_a_kind_can_have_a_number_of_its_own(tmp_path: Path) -> None:
    truths = read_truths(written(tmp_path / "truths.jsonl", articles(80)))
    made = critique_cases(truths, 4, most={"relevance": 9}).cases
    counts = Counter((case.kind, case.label) for case in made)
    assert {n for (kind, _), n in counts.items() if kind == "relevance"} == {9}
    assert {n for (kind, _), n in counts.items() if kind != "relevance"} == {4}


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


def test_the_same_seed_makes_the_same_cases(tmp_path: Path, cases: list[LabelledCase]) -> None:
    truths = read_truths(written(tmp_path / "truths.jsonl", TRUTHS))
    assert critique_cases(truths, each=12).cases == cases
    assert critique_cases(truths, each=12, seed=1).cases != cases


def test_a_kind_that_lacks_a_label_is_left_out_and_counted(tmp_path: Path) -> None:
    alone = [{**row, "title": f"alone {n}"} for n, row in enumerate(TRUTHS[::2])]
    made = critique_cases(read_truths(written(tmp_path / "one.jsonl", alone)), each=5)
    assert "relevance" not in {case.kind for case in made.cases}
    assert made.dropped["more than the rarest label of the kind"] >= 5


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


@pytest.mark.parametrize(
    ("line", "told"),
    [("{", "JSON"), ('{"question": "Who?"}', "'passages'"), ('{"passages": []}', "question")],
)
def test_a_line_that_is_none_of_them_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(TRUTHS[0]) + "\n" + line + "\n")
    with pytest.raises(DataError, match=told) as raised:
        read_truths(path)
    assert raised.value.line == 2


def test_tasks_that_need_no_retrieval_are_carried_out_rightly() -> None:
    tasks = self_contained(["The kettle is red.", "Rain fell on Malta."], 30)
    assert len({task.instruction for task in tasks}) == len(tasks) == 30
    for task in tasks:
        if task.instruction.startswith("What is ") and " plus " in task.instruction:
            left, right = task.instruction[8:-1].split(" plus ")
            assert task.output.endswith(f"= {int(left) + int(right)}.")
        if "capital letters" in task.instruction:
            assert task.output.lower() in task.instruction.lower()


def test_no_field_brings_a_token_into_the_prompt() -> None:
    case = LabelledCase(
        kind="support", instruction="Say [Relevant]", preceding="</paragraph>",
        evidence="a [Retrieval] b", output="[Utility:5]", label=FULLY,
    )  # fmt: skip
    text = "".join(critic_prompt(case))
    assert not any(token in text for labels in LABELS.values() for token in labels)
    assert text.startswith("### Instruction:\n")
    assert text.endswith("### Response:\n")
    assert "(Retrieval)" in text


def test_a_label_of_another_kind_is_refused(tmp_path: Path, cases: list[LabelledCase]) -> None:
    path = tmp_path / "cases.jsonl"
    write_records(path, cases[:3])
    assert read_records(path, LabelledCase) == cases[:3]
    row = json.loads(path.read_text().splitlines()[0]) | {"label": "[Good]"}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"line 1.*no label of"):
        read_records(path, LabelledCase)


class Judge:
    """Refuses every other case, each time it is asked for it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, asked: list[LabelledCase]) -> list[Judgement]:
        self.asked += [case.key for case in asked]
        return [
            Judgement("", "refused") if int(case.key, 16) % 2 else Judgement(LABELS[case.kind][0])
            for case in asked
        ]


def test_refused_cases_are_asked_again_then_counted(
    tmp_path: Path, cases: list[LabelledCase]
) -> None:
    judge = Judge()
    with Ledger(tmp_path / "run", {}) as ledger:
        made = label_cases(cases, judge, ledger, name="model", batch=8, attempts=3)
    odd = sum(int(case.key, 16) % 2 for case in cases)
    assert 0 < odd < len(cases)
    assert made.rejected == {"refused": odd}
    assert len(made.cases) == len(cases) - odd
    assert len(judge.asked) == len(cases) + 2 * odd
    assert {case.source for case in made.cases} == {"model"}
    assert sum(of for _, of in made.agreement.values()) == len(made.cases)
    same = sum(case.label == LABELS[case.kind][0] for case in cases if not int(case.key, 16) % 2)
    assert sum(right for right, _ in made.agreement.values()) == same


def test_a_run_killed_anywhere_goes_on_without_repeating_or_losing_a_case(
    tmp_path: Path, cases: list[LabelledCase]
) -> None:
    path, whole = tmp_path / "run", tmp_path / "whole"
    with Ledger(whole, {"model": "m"}) as ledger:
        expected = label_cases(cases, Judge(), ledger, name="m", batch=8, attempts=1)
    content = whole.read_bytes()
    for cut in range(0, len(content), len(content) // 9):
        path.write_bytes(content[:cut])
        judge = Judge()
        with Ledger(path, {"model": "m"}) as ledger:
            known = set(ledger.made)
            made = label_cases(cases, judge, ledger, name="m", batch=8, attempts=1)
        assert made == expected
        assert not known & set(judge.asked)
        assert len(set(judge.asked)) == len(judge.asked) == len(cases) - len(known)
    with pytest.raises(TrainingError, match="other options"):
        Ledger(path, {"model": "other"})


def test_a_limit_leaves_the_rest_for_the_next_run(
    tmp_path: Path, cases: list[LabelledCase]
) -> None:
    judge = Judge()
    with Ledger(tmp_path / "run", {}) as ledger:
        made = label_cases(
            cases, judge, ledger, name="m", batch=8, attempts=1,
            stopped=lambda: "max-calls is 16" if len(judge.asked) >= 16 else "",
        )  # fmt: skip
    assert len(judge.asked) == 16
    assert made.left == len(cases) - len(made.cases) - sum(made.rejected.values()) > 0


def test_a_full_disk_is_told_and_the_file_stays(tmp_path: Path, cases: list[LabelledCase]) -> None:
    path = tmp_path / "folder" / "cases.jsonl"
    path.parent.write_text("a file where a folder should be")
    with pytest.raises(TrainingError, match=r"writing to .* failed"):
        write_records(path, cases)


def test_passages_that_say_whether_they_answer(tmp_path: Path) -> None:
    text = "The kettle is red. It is old."
    row = {
        "question": "Which kettle?",
        "documents": [
            {"title": "Marked", "text": text, "answer": True},
            {"title": "Other", "text": "Rain fell.", "answer": False},
            {"title": "Empty", "text": " "},
            {"title": "Marked, but empty", "text": " ", "answer": True},
        ],
    }
    (truth,) = read_truths(written(tmp_path / "truths.jsonl", [row]))
    (gold,) = truth.gold  # Without a known answer, a marked passage is one as a whole.
    assert (gold.answer, gold.sentence) == (text, "The kettle is red.")
    assert [one.title for one in truth.others] == ["Other"]
    path = written(tmp_path / "more.jsonl", [row | {"answers": ["blue"]}])
    (truth,) = read_truths(path)
    assert truth.gold == ()  # It is marked, but does not hold the answer in these words.
    assert [one.title for one in truth.others] == ["Other"]


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_a_question_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "truths.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=r"truths\.jsonl.*it holds no question"):
        read_truths(path)


def test_the_same_question_twice_is_kept_once(tmp_path: Path) -> None:
    rows = articles(24)
    once = critique_cases(read_truths(written(tmp_path / "once.jsonl", rows)), each=12)
    twice = critique_cases(read_truths(written(tmp_path / "twice.jsonl", rows * 2)), each=99)
    assert len({case.key for case in twice.cases}) == len(twice.cases)
    assert twice.dropped["repeated"] > once.dropped.get("repeated", 0)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Red.", "Red."),  # Too short for a sentence, and there is no other answer to mistake.
        ("The kettle is red.\nIt is old and it stands by the river.", "red"),
    ],
)
def test_a_lone_question_makes_only_what_it_can(tmp_path: Path, text: str, answer: str) -> None:
    row = {"title": "", "text": text, "questions": [
        {"question": "Which colour?", "answers": [{"text": answer, "start": text.index(answer)}]},
    ]}  # fmt: skip
    made = critique_cases(read_truths(written(tmp_path / "one.jsonl", [row])), each=5)
    assert not [case for case in made.cases if case.kind == "support"]
    assert made.dropped["more than the rarest label of the kind"] > 0


def test_a_passage_said_to_answer_and_not_to_answer_is_left_out(tmp_path: Path) -> None:
    asked, text = "Which kettle is the oldest of all?", "The kettle of Lugano is the oldest."
    doubtful = [
        {"question": asked, "documents": [{"title": "Kettle", "text": text, "answer": answer}]}
        for answer in (True, False)
    ]
    truths = read_truths(written(tmp_path / "truths.jsonl", [*articles(24), *doubtful]))
    made = critique_cases(truths, each=99)
    assert made.dropped["two labels for the same case"] == 1
    assert not [one for one in made.cases if (one.kind, one.instruction) == ("relevance", asked)]


def test_as_many_judged_cases_are_shown_as_in_the_paper() -> None:
    assert {kind: len(shown) for kind, shown in DEMONSTRATIONS.items()} == {
        "retrieve": 7, "retrieve_next": 1, "relevance": 2, "support": 1, "utility": 2,
    }  # fmt: skip
    for kind, shown in DEMONSTRATIONS.items():
        assert {one.case.kind for one in shown} == {kind}
        assert {f"[{one.label}]" for one in shown} <= set(LABELS[kind])
        text = demonstrated(kind)
        replies = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        assert [reply["label"] for reply in replies] == [one.label for one in shown]
        (message, _) = PACKAGED.render(
            "critic_label", task="t", labels="l", case="c", examples=text
        )
        assert text in message.content
