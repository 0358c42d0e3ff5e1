"""A chat model that tells facts apart and checks them against pages."""

import json
from pathlib import Path

import pytest

from crag.papers.metrics.fact_judge import PASSAGE_WORDS, ChatFactJudge, Pages
from crag.papers.metrics.factscore import factscore
from crag.testing import FakeChatModel


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


def test_it_scores_an_answer(tmp_path: Path) -> None:
    model = FakeChatModel(replies=["- Ada counted.\n- Ada sang.", "yes", "yes"])
    judge = ChatFactJudge(model, pages(tmp_path, ("Ada", "Ada counted.")))
    found = factscore("Ada", "She counted and sang.", judge)
    assert found is not None
    assert (found.init_score, found.facts) == (1.0, 2)
