import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from crag.papers.metrics.factscore import (
    PASSAGE_WORDS,
    ChatFactJudge,
    Pages,
    factscore,
    factscore_metrics,
)
from crag.testing import FakeChatModel

Make = Callable[..., Any]


class SentenceJudge:
    """Takes each sentence for a fact, and those about the topic that say true for supported."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    def facts(self, answer: str) -> Sequence[str]:
        self.answers.append(answer)
        return [one for one in answer.split(".") if one.strip() and "sorry" not in one]

    def supported(self, topic: str, facts: Sequence[str]) -> Sequence[bool | None]:
        return [None if "unknown" in fact else topic == "Ada" and "true" in fact for fact in facts]


@pytest.mark.parametrize(
    ("true", "false", "penalty"),
    [
        (10, 0, 1.0),
        (20, 20, 1.0),
        (3, 1, math.exp(1 - 10 / 4)),
        (0, 1, math.exp(-9)),
        (9, 0, math.exp(1 - 10 / 9)),
    ],
)
def test_by_hand(true: int, false: int, penalty: float) -> None:
    found = factscore("Ada", "true." * true + "false." * false, SentenceJudge())
    assert found is not None
    assert found.init_score == true / (true + false)
    assert found.score == pytest.approx(found.init_score * penalty)
    assert found.facts == true + false


@pytest.mark.parametrize("answer", ["", "  ", "I am sorry."])
def test_abstentions_have_no_score(answer: str) -> None:
    assert factscore("Ada", answer, SentenceJudge()) is None


def test_metrics_judge_each_answer_once(example: Make, row: Make) -> None:
    judge = SentenceJudge()
    metrics = factscore_metrics(judge)
    person = example("biography", answers=(), extra={"topic": "Ada"})
    answered = row("true. false.")
    assert [metric.name for metric in metrics] == ["init_score", "factscore", "facts"]
    assert [metric.score(person, answered) for metric in metrics] == [
        0.5,
        pytest.approx(0.5 * math.exp(-4)),
        2.0,
    ]
    assert judge.answers == ["true. false."]
    pairs = [(person, answered), (person, row("true.")), (person, row("Sorry, sorry."))]
    assert metrics[0].summarise(pairs[:2]) == 0.75
    assert metrics[0].summarise([(person, row("", outcome="not_found"))]) is None
    assert metrics[0].score(example("biography"), answered) is None
    assert metrics[0].score(example(), answered) is None


def test_an_answer_with_a_fact_that_nobody_can_judge_has_no_score(example: Make, row: Make) -> None:
    assert factscore("Ada", "true. unknown.", SentenceJudge()) is None
    person = example("biography", answers=(), extra={"topic": "Ada"})
    scores = [metric.score(person, row("true.")) for metric in factscore_metrics()]
    assert scores == [None, None, None]


def pages(folder: Path, *rows: tuple[str, str]) -> Pages:
    path = folder / "pages.jsonl"
    lines = [json.dumps({"title": title, "text": text}) for title, text in rows]
    path.write_text("\n".join(lines) + "\n\n")
    return Pages([path], ["Ada", "Cy"])


def test_facts_are_the_lines_of_a_list(tmp_path: Path) -> None:
    said = "Here they are:\n- Ada counted.\n* Ada wrote.\n2. Ada died.\n\nNONE of them is new."
    model = FakeChatModel(replies=[said, "NONE"])
    judge = ChatFactJudge(model, pages(tmp_path, ("Ada", "Ada counted.")))
    assert judge.facts("She counted, wrote and died.") == [
        "Ada counted.",
        "Ada wrote.",
        "Ada died.",
    ]
    assert judge.facts("I cannot say.") == []
    assert "She counted, wrote and died." in str(model.prompts[0][-1].content)


def test_each_fact_is_checked_against_the_page_of_its_topic(tmp_path: Path) -> None:
    source = pages(tmp_path, ("Ada", "Ada counted."), ("ADA", "Ada wrote."), ("Cy", "Cy sang."))
    assert source.passages("ada", "anything") == ["Ada counted.", "Ada wrote."]
    model = FakeChatModel(replies=["Yes."])
    judge = ChatFactJudge(model, source)
    assert judge.supported("Ada", ["Ada counted."]) == [True]
    prompt = str(model.prompts[0][-1].content)
    assert "Ada wrote." in prompt
    assert "Cy sang." not in prompt


def test_a_long_page_gives_the_passages_that_share_words_with_the_fact(tmp_path: Path) -> None:
    filler = [f"word{n} " * PASSAGE_WORDS for n in range(9)]
    source = pages(tmp_path, ("Ada", " ".join([*filler, "Ada counted sheep.", *filler])))
    found = source.passages("Ada", "Ada counted sheep.")
    assert len(found) == 5
    assert any("sheep" in passage for passage in found)


@pytest.mark.parametrize(
    ("reply", "told"), [("no", False), ("Yes", True), ("I do not know", None), ("", None)]
)
def test_what_cannot_be_judged_is_neither(tmp_path: Path, reply: str, told: bool | None) -> None:
    judge = ChatFactJudge(FakeChatModel(replies=[reply]), pages(tmp_path, ("Ada", "Ada counted.")))
    assert judge.supported("Ada", ["Ada counted."]) == [told]
    assert judge.supported("Bob", ["Bob sang."]) == [None]
