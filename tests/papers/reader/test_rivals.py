"""What stands against a passage."""

from crag.papers.reader.asked_questions import Asked, AskedQuestion, Kind
from crag.papers.reader.asked_units import Section
from crag.papers.reader.rivals import MOST, with_rivals

UNIT = "The pump stops by itself after twenty minutes."
OWN = Section("pump", "a.md", "Pump", "Safety", f"{UNIT} Press the lever then.", ((0, len(UNIT)),))


def about(text: str, source: str = "b.md", package: str = "pump") -> Section:
    return Section(package, source, "Pump", "", text)


def asked(*questions: tuple[Kind, str]) -> Asked:
    made = [AskedQuestion(question=question, kind=kind) for kind, question in questions]
    return Asked(OWN, OWN.units[0], made)


WHEN: tuple[Kind, str] = ("plain", "When does the pump stop by itself?")


def test_rivals_share_words_are_of_the_package_and_do_not_repeat_the_unit() -> None:
    like = [about(f"The pump of the barrel number {n} stops in frost.") for n in range(9)]
    same_file = about("The lid is heavy.", source="a.md")
    sections = [
        OWN, *like, same_file,
        about(f"Note: {UNIT}"),
        about("Nothing is alike."),
        about("The pump stops by itself in winter.", package="other"),
    ]  # fmt: skip
    (row,) = with_rivals([asked(WHEN, ("other", "why did the barrel stop"))], sections)
    texts = [rival.text for rival in row.rivals]
    assert (row.text, row.unit) == (OWN.text, OWN.units[0])
    assert texts[-1] == same_file.text
    assert set(texts[:-1]) <= {one.text for one in like}
    assert len(texts) == len(set(texts))
    assert 5 < len(texts) <= MOST
    assert with_rivals([asked(WHEN, ("other", "why did the barrel stop"))], sections) == [row]


def test_a_question_whose_own_section_is_not_among_the_first_asks_too_little() -> None:
    sections = [OWN, *(about(f"Barrel, barrel, barrel of hoses {n}.") for n in range(20))]
    loose: tuple[Kind, str] = ("loose", "what about the barrel of hoses")
    far: list[tuple[Kind, str]] = [("plain", "Which barrel of hoses?"), ("search", "barrel hoses")]
    (row,) = with_rivals([asked(*far, loose)], sections)
    assert [question.kind for question in row.questions] == ["loose"]
    assert with_rivals([asked(*far)], sections) == []


def test_a_passage_without_a_rival_or_a_question_is_no_row() -> None:
    assert with_rivals([asked(WHEN)], [OWN]) == []
    assert (
        with_rivals([asked(("plain", "How do I use it?"))], [OWN, about("The pump is on.")]) == []
    )
