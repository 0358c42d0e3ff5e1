import json
import math
from collections.abc import Callable
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
    found = factscore([True] * true + [False] * false)
    assert found is not None
    assert found.init_score == true / (true + false)
    assert found.factscore == pytest.approx(found.init_score * penalty)
    assert found.facts == true + false
    assert factscore([True, None]) is factscore([]) is None


def test_metrics_judge_each_answer_once(example: Make, row: Make) -> None:
    asked = []

    def judge(topic: str, answer: str) -> list[bool | None]:
        asked.append((topic, answer))
        return ["true" in one for one in answer.split(".") if one.strip()]

    metrics = factscore_metrics(judge)
    person = example("biography", answers=(), topic="Ada")
    answered = row("true [1]. false.")
    assert [metric.name for metric in metrics] == ["init_score", "factscore", "facts"]
    assert [metric.score(person, answered) for metric in metrics] == [
        0.5,
        pytest.approx(0.5 * math.exp(-4)),
        2.0,
    ]
    assert asked == [("Ada", "true. false.")]
    others = [row(""), row("true.", outcome="not_found"), row("true.", outcome="failed")]
    assert [metrics[0].score(person, one) for one in others] == [None] * 3
    assert metrics[0].score(example("biography"), answered) is None
    assert metrics[0].score(example(), answered) is None
    assert [metric.score(person, answered) for metric in factscore_metrics()] == [None] * 3


def pages(folder: Path, *rows: tuple[str, str]) -> Pages:
    path = folder / "pages.jsonl"
    lines = [json.dumps({"title": title, "text": text}) for title, text in rows]
    path.write_text("\n".join(lines) + "\n\n")
    return Pages([path], ["Ada", "Cy"])


def test_each_line_of_a_list_is_a_fact_checked_against_the_page_of_its_topic(
    tmp_path: Path,
) -> None:
    source = pages(tmp_path, ("Ada", "Ada counted."), ("ADA", "Ada wrote."), ("Cy", "Cy sang."))
    said = "Here they are:\n- Ada counted.\n* Ada wrote.\n\nNONE of them is new."
    model = FakeChatModel(replies=[said, "Yes."])
    assert ChatFactJudge(model, source)("Ada", "She counted and wrote.") == [True, True]
    told = [str(messages[-1].content) for messages in model.prompts]
    assert "She counted and wrote." in told[0]
    assert all("Ada wrote." in one and "Cy sang." not in one for one in told[1:])
    assert ChatFactJudge(FakeChatModel(replies=["NONE"]), source)("Ada", "I cannot say.") == []
    broken = FakeChatModel(error=TimeoutError())
    assert ChatFactJudge(broken, source)("Ada", "She counted.") == [None]


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
    source = pages(tmp_path, ("Ada", "Ada counted."))
    model = FakeChatModel(replies=["- Ada counted.", reply])
    assert ChatFactJudge(model, source)("Ada", "Ada counted.") == [told]
    model = FakeChatModel(replies=["- Bob sang.", "yes"])
    assert ChatFactJudge(model, source)("Bob", "Bob sang.") == [None]
