"""What of a model's questions is used, of what they are asked, and what stands against."""

from pathlib import Path

import pytest

from crag.papers.reader.asked import (
    MOST_RIVALS,
    AskedQuestion,
    Kind,
    Unit,
    asking,
    judging,
    questions_in,
    sorted_questions,
    units_in,
    units_of_package,
    with_rivals,
)
from crag.papers.reader.documentation import Section

REPLY = """QUESTION: When does the pump stop by itself?
SAME IN OTHER WORDS: will it run dry if I fall asleep
SEARCH: pump automatic stop time"""
SECTION = Section("pump", "a.md", "Manual", "Safety > Manual", "Be careful. It stops\nby itself.")
UNIT = Unit(SECTION, (12, len(SECTION.text)))


@pytest.mark.parametrize("reply", [REPLY, REPLY.removeprefix("QUESTION: ")])
def test_a_reply_has_three_questions(reply: str) -> None:
    assert questions_in(reply) == {
        "plain": "When does the pump stop by itself?",
        "other": "will it run dry if I fall asleep",
        "search": "pump automatic stop time",
    }


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "QUESTION: Why?",
        "QUESTION: What does this passage say about pumps?",
        "QUESTION: What is mentioned of the pump and its lever?",
        "QUESTION: Wann hört die Pumpe von selbst auf?",
        "QUESTION: How do I use it?",
        f"QUESTION: {'pump lever ' * 21}?",
        "\nSEARCH: pump",
        "\nSEARCH: pump pump",
    ],
)
def test_what_nobody_would_ask_is_left_out(reply: str) -> None:
    assert questions_in(reply) == {}


@pytest.mark.parametrize(("score", "kind"), [(1.2, "other"), (1.19, "loose"), (None, None)])
def test_a_question_in_other_words_is_sorted_by_its_score(
    score: float | None, kind: str | None
) -> None:
    questions = sorted_questions(REPLY, score)
    found = [one for one in questions if one.kind in {"other", "loose"}]
    assert [(one.kind, one.score) for one in found] == ([(kind, score)] if kind else [])
    assert {"plain", "search"} <= {one.kind for one in questions}


def test_the_model_sees_headings_what_stands_before_and_the_passage() -> None:
    messages = asking(UNIT)
    assert messages[-1].text == (
        "Section: pump > Manual > Safety\nBefore it: Be careful.\nPassage: It stops by itself."
    )
    examples = [questions_in(message.text) for message in messages[2:-1:2]]
    assert [len(one) for one in examples] == [3] * 6
    assert judging("Does it stop?", UNIT)[-1].text == (
        "Question: Does it stop?\nPassage: pump > Manual > Safety\nIt stops by itself.\n"
        "Does the passage answer the question?"
    )


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("The pump stops by itself after twenty minutes.\n\nIt is dry.", 1),
        ("This pump is under the MIT license, and so are all of its parts.", 0),
        ("Die Pumpe läuft, solange die grüne Lampe nicht von allein erlischt.", 0),
        ("1234567890 1234567890 1234567890 12345 12345 12345 12345 and a pump.", 0),
        ("It stops by itself after twenty minutes,\nand starts again.\n\n- Empty it.", 1),
    ],
)
def test_paragraphs_that_say_something_are_asked_of(text: str, asked: int) -> None:
    found = [text[start:end] for start, end in units_in(text)]
    assert found == text.split("\n\n")[:1] * asked


def test_a_package_has_so_many_units_and_each_text_once(tmp_path: Path) -> None:
    folder = tmp_path / "pump"
    (folder / "docs").mkdir(parents=True)
    for number in range(5):
        page = "\n\n".join(
            f"The pump number {number} has a long {part} for its owner." for part in "abcd"
        )
        (folder / "docs" / f"page{number}.md").write_text(f"# Page {number}\n\n{page}\n")
    (folder / "again.md").write_text((folder / "docs" / "page0.md").read_text())
    sections, units = units_of_package(folder, 4)
    assert len(sections) == len({one.text for one in sections}) == 5
    assert len(units) == len({unit.key for unit in units}) == 4
    assert {one.package for one in sections} == {"pump"}
    assert units_of_package(folder, 4) == (sections, units)


STOPS = "The pump stops by itself after twenty minutes."
OWN = Section("pump", "a.md", "Pump", "Safety", f"{STOPS} Press the lever then.")
WHEN: tuple[Kind, str] = ("plain", "When does the pump stop by itself?")


def about(text: str, package: str = "pump") -> Section:
    return Section(package, "b.md", "Pump", "", text)


def asked(*questions: tuple[Kind, str]) -> dict[Unit, list[AskedQuestion]]:
    made = [AskedQuestion(question=question, kind=kind) for kind, question in questions]
    return {Unit(OWN, (0, len(STOPS))): made}


def test_rivals_share_words_are_of_the_package_and_do_not_repeat_the_unit() -> None:
    like = [about(f"The pump of the barrel number {n} stops in frost.") for n in range(9)]
    sections = [
        OWN, *like,
        about(f"Note: {STOPS}"),
        about("Nothing is alike."),
        about("The pump stops by itself in winter.", package="other"),
    ]  # fmt: skip
    (row,) = with_rivals(asked(WHEN, ("other", "why did the barrel stop")), sections)
    texts = [rival.text for rival in row.rivals]
    assert (row.text, row.unit) == (OWN.text, (0, len(STOPS)))
    assert set(texts) <= {one.text for one in like}
    assert 5 < len(texts) == len(set(texts)) <= MOST_RIVALS


def test_a_question_whose_own_section_is_not_among_the_first_asks_too_little() -> None:
    sections = [OWN, *(about(f"Barrel, barrel, barrel of hoses {n}.") for n in range(20))]
    far: list[tuple[Kind, str]] = [("plain", "Which barrel of hoses?"), ("search", "barrel hoses")]
    wanted: tuple[Kind, str] = ("other", "what about the barrel of hoses")
    (row,) = with_rivals(asked(*far, wanted), sections)
    assert [question.kind for question in row.questions] == ["other"]
    assert with_rivals(asked(*far), sections) == []


def test_a_passage_without_a_rival_or_a_question_is_no_row() -> None:
    assert with_rivals(asked(WHEN), [OWN]) == []
    vague: tuple[Kind, str] = ("plain", "How do I use it?")
    assert with_rivals(asked(vague), [OWN, about("The pump is on.")]) == []
