"""Sentences, the strips that support them, and numbers that move to where they belong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.answering.attribution import Attributed, attribute
from crag.answering.citations import marks_in, validate
from crag.answering.support import WordAttributor
from crag.events import Event
from crag.parts import Passage
from crag.state import Citation, Source

QUESTION = "Who wrote the first program?"
ADA = "Ada Lovelace wrote the first program in 1843."
ENGINE = "The analytical engine was designed by Charles Babbage."
WORDS = [
    "Ada Lovelace wrote the first program", "The engine was designed by Babbage.", "It rained.",
    "[1]", "[2][1]", "[9]", "\n", "\n\n", ". ", "- ", "`a [1]`", "```\n", "# ", " ", "|", "Yes.",
    ":", "。", "é",
]  # fmt: skip


def strips(*texts: str) -> list[Citation]:
    source = Source(id="a", title="Notes", url="", position="")
    return [Citation(number=n, text=text, source=source) for n, text in enumerate(texts, start=1)]


def told(answer: str, *texts: str) -> Attributed:
    return attribute(QUESTION, answer, strips(*(texts or (ADA, ENGINE))))


def statuses(found: Attributed) -> list[tuple[str, str, list[int]]]:
    return [
        (found.answer[one["start"] : one["end"]], one["status"], one["strips"])
        for one in found.sentences
    ]


def test_a_sentence_without_number_gets_that_of_the_strip_that_supports_it() -> None:
    found = told("Babbage designed the analytical engine. Lovelace wrote the first program.")
    assert found.answer == (
        "Babbage designed the analytical engine [2]. Lovelace wrote the first program [1]."
    )
    assert statuses(found) == [
        ("Babbage designed the analytical engine [2].", "attributed", [2]),
        ("Lovelace wrote the first program [1].", "attributed", [1]),
    ]
    assert [one["number"] for one in found.citations] == [1, 2]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("Ada wrote the first program [1].", "Ada wrote the first program [1]."),
        ("Ada wrote the first program. [1]", "Ada wrote the first program. [1]"),
        ("[1] Ada wrote the first program.", "[1] Ada wrote the first program."),
        ("- Ada wrote the first program [1]", "Ada wrote the first program [1]"),
        ("1. Ada wrote the first program [1].", "Ada wrote the first program [1]."),
    ],
)
def test_what_a_sentence_cites_itself_stays(answer: str, sentence: str) -> None:
    found = told(answer)
    assert found.answer == answer
    assert statuses(found) == [(sentence, "cited", [1])]


def test_a_number_after_a_sentence_is_not_that_of_the_next() -> None:
    found = told("Ada wrote the first program. [1] Babbage designed the analytical engine. [2]")
    assert [one["strips"] for one in found.sentences] == [[1], [2]]


def test_a_sentence_that_cites_another_strip_gets_the_one_that_supports_it_too() -> None:
    found = statuses(told("Ada wrote the first program [2]."))
    assert found == [("Ada wrote the first program [1] [2].", "attributed", [2, 1])]


def test_a_sentence_that_nothing_supports_is_told_whatever_it_cites() -> None:
    found = told("Ada wrote the first program [1]. Napoleon burnt Moscow [2]. It rained in 1999.")
    assert found.answer.endswith("Napoleon burnt Moscow [2]. It rained in 1999.")
    assert statuses(found)[1:] == [
        ("Napoleon burnt Moscow [2].", "unsupported", [2]),
        ("It rained in 1999.", "unsupported", []),
    ]
    assert [one["number"] for one in found.citations] == [1, 2]
    wrong = [told(said).is_misstated for said in (found.answer, "It says so in passage 2.")]
    assert wrong == [True, False]  # No strip has 1999, and there is a second one.


def test_a_sentence_from_two_strips_that_cites_both_is_supported_by_both_together() -> None:
    both = "Ada Lovelace wrote in 1843, Charles Babbage designed the engine [1][2]."
    assert [one["status"] for one in told(both).sentences] == ["cited"]
    alone = both.replace("[1][2]", "[1]")
    assert [one["status"] for one in told(alone).sentences] == ["unsupported"]


@pytest.mark.parametrize(
    ("answer", "written", "strips"),
    [
        ("Babbage designed the engine. Ada wrote the first program.\n\nSources: [1].",
         "Babbage designed the engine [2]. Ada wrote the first program.\n\nSources: [1].",
         [[2], [1]]),
        ("Ada wrote the first program.\n[1]\n[2]", "Ada wrote the first program.\n[1]\n[2]",
         [[1, 2]]),
        ("[1]\n\nAda wrote the first program.", "[1]\n\nAda wrote the first program [1].", [[1]]),
    ],
)  # fmt: skip
def test_numbers_on_a_line_of_their_own_are_those_of_the_sentence_above(
    answer: str, written: str, strips: list[list[int]]
) -> None:
    found = told(answer)
    assert found.answer == written
    assert [one["strips"] for one in found.sentences] == strips


@pytest.mark.parametrize(
    ("question", "said", "text", "wrong"),
    [
        ("What is the hotel limit in London?", "The hotel limit in London is 180 EUR.",
         "| City | Hotel limit |\n| --- | --- |\n| London | 260 EUR |\n| Paris | 180 EUR |",
         True),
        ("What is the hotel limit in London?", "It is 260 EUR in London.",
         "| City | Hotel limit |\n| --- | --- |\n| London | 260 EUR |\n| Paris | 180 EUR |",
         False),
        ("Is invoice 1042 paid?", "Invoice 1042 is overdue.",
         "- Invoice 1041: overdue\n- Invoice 1042: open", True),
        ("When does the lease of the barn end?", "The lease of the barn ends on 31 May 2025.",
         "The lease of the barn ends on 2025-05-31.", False),
        ("How heavy is the Kestrel?", "The Kestrel weighs 3 kg.",
         "The Kestrel is a tent for two. It weighs 3 kg.", False),
        ("How many nights?", "At most 3 nights are paid.", "At most three nights are paid.", False),
        ("What does it cost?", "It costs 1500 EUR.", "It costs 1,500 EUR.", False),
        ("Is parking paid?", "Parking at the airport is not paid.",
         "Parking at the airport is paid.", True),
        ("Is parking paid?", "Parking is paid at the airport.",
         "Parking at the airport is never paid.", True),
        ("Is Munich open on Saturday?", "Yes, Munich is open on Saturday.",
         "Branch: Munich. Monday to Friday 8 to 17, closed on Saturday.", True),
        ("Is Munich open on Saturday?", "Munich is closed on Saturday.",
         "Branch: Munich. Monday to Friday 8 to 17, closed on Saturday.", False),
        ("Is Munich open on Saturday?", "Munich is not open on Saturday.",
         "Munich: Monday to Friday 8 to 17, closed on Saturday.", False),
        ("Is Munich open on Friday?", "Munich is open on Friday.",
         "Munich is open on Friday, and closed on Saturday.", False),
        ("How much may I carry over?", "You cannot carry over more than 5 days.",
         "You can carry over 5 days.", False),
    ],
)  # fmt: skip
def test_what_a_sentence_states_is_checked_where_it_stands_for_what_was_asked(
    question: str, said: str, text: str, *, wrong: bool
) -> None:
    found = attribute(question, f"{said[:-1]} [1].", strips(text), Attributor([[1.0]]))
    assert found.is_misstated is wrong
    assert [one["status"] for one in found.sentences] == ["unsupported" if wrong else "cited"]


def test_headings_tables_code_and_what_leads_to_a_list_are_left_alone() -> None:
    answer = (
        "# Ada\n\nIt is as follows:\n\n| who | what |\n|---|---|\n| Ada | program [1] |\n\n"
        "```python\nprint('Ada [2]')\n```\n\n- Ada wrote the first program"
    )
    found = told(answer)
    assert found.answer == f"{answer} [1]"
    assert statuses(found) == [("Ada wrote the first program [1]", "attributed", [1])]
    assert [one["number"] for one in found.citations] == [1]


def test_a_mere_yes_claims_nothing_but_keeps_its_number() -> None:
    found = told("Yes [2]. Ada wrote the first program.")
    assert found.answer == "Yes [2]. Ada wrote the first program [1]."
    assert len(found.sentences) == 1
    assert [one["number"] for one in found.citations] == [1, 2]
    assert told("Yes.").citations == []


class Attributor:
    """Supports with a fixed degree, returns nonsense, or raises."""

    threshold = 0.6

    def __init__(self, reply: object) -> None:
        self.reply = reply
        self.asked: list[tuple[str, list[str], list[Passage]]] = []

    def support(
        self, question: str, sentences: list[str], passages: list[Passage]
    ) -> list[list[float]]:
        self.asked.append((question, sentences, passages))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply  # type: ignore[return-value]


def test_the_attributor_decides_and_is_asked_once_for_all() -> None:
    """The columns are three strips, and two sets of strips that sentences cite together."""
    attributor = Attributor([
        [0.1, 0.6, 0.5, 0.0, 0.0], [0.5, 0.5, 0.5, 0.0, 0.0],
        [0.6, 0.0, 0.9, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.6],
    ])  # fmt: skip
    answer = "It snowed. It froze. It hailed [1][2]. It blew [2][3]."
    found = attribute(QUESTION, answer, strips(ADA, ENGINE, "Rain."), attributor)
    assert found.answer == "It snowed [2]. It froze. It hailed [1][2]. It blew [2][3]."
    assert [one["status"] for one in found.sentences] == [
        "attributed", "unsupported", "cited", "cited",
    ]  # fmt: skip
    texts = [ADA, ENGINE, "Rain.", f"{ADA}\n{ENGINE}", f"{ENGINE}\nRain."]
    sentences = ["It snowed.", "It froze.", "It hailed.", "It blew."]
    assert attributor.asked == [(QUESTION, sentences, [Passage("Notes", text) for text in texts])]
    attribute(QUESTION, "Yes.", strips(ADA), attributor)
    assert len(attributor.asked) == 1


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (ValueError("broken"), "ValueError: broken"),
        ([[1.0]], "CragError: the attributor returned 1 results for 2 inputs"),
        ([], "CragError: the attributor returned 0 results for 1 inputs"),
    ],
)
def test_an_attributor_that_fails_leaves_it_to_the_words(reply: object, detail: str) -> None:
    found = attribute(
        QUESTION, "Ada wrote the first program.", strips(ADA, ENGINE), Attributor(reply)
    )
    assert found.answer == "Ada wrote the first program [1]."
    assert found.events == [
        Event(
            kind="evaluator_failed", node="generate", detail=detail,
            fallback="shared words attribute the sentences",
        )
    ]  # fmt: skip


def test_an_answer_in_another_language_than_its_strips_keeps_its_numbers() -> None:
    answer = "Das erste Programm wurde von der Frau aus London geschrieben [2]."
    found = told(answer)
    assert (found.answer, found.sentences) == (answer, [])
    assert [one["number"] for one in found.citations] == [2]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join))
def test_no_word_is_lost_and_every_number_refers_to_a_strip(written: str) -> None:
    available = strips(ADA, ENGINE)
    checked = validate(written, available)
    found = attribute(QUESTION, checked.answer, available)
    numbers = {one["number"] for one in found.citations}
    assert numbers == {number for mark in marks_in(found.answer) for number in mark.numbers}
    assert validate(found.answer, available).answer == found.answer
    end = 0
    for one in found.sentences:
        assert end <= one["start"] < one["end"] <= len(found.answer)
        assert set(one["strips"]) <= numbers
        end = one["end"]
    again = attribute(QUESTION, found.answer, available)
    assert (again.answer, again.citations) == (found.answer, found.citations)


def test_an_answer_that_is_only_judged_stays_as_it_is() -> None:
    answer = "Ada wrote the first program.\n\nIt rained."
    found = attribute(QUESTION, answer, strips(ADA, ENGINE), add=False)
    assert found.answer == answer
    assert [one["status"] for one in found.sentences] == ["attributed", "unsupported"]


@pytest.mark.parametrize(
    ("question", "sentence", "text", "supported"),
    [
        ("How long until a login runs out?", "The login runs out after 2 weeks.",
         "Session expiry time in seconds. Defaults to 2 weeks.", True),
        ("How long until a login runs out?", "The login runs out after 3 weeks.",
         "Session expiry time in seconds. Defaults to 2 weeks.", False),
        ("Is the state a deep copy?", "No, the state I see is a shallow copy.",
         "The state received is a **shallow** copy.", True),
        ("Who built the mill?", "Who built the mill?", "Nothing of that.", False),
    ],
)  # fmt: skip
def test_what_a_sentence_adds_to_the_question_is_to_be_in_the_strip(
    question: str, sentence: str, text: str, supported: bool
) -> None:
    attributor = WordAttributor()
    ((degree,),) = attributor.support(question, [sentence], [Passage("", text)])
    assert (degree >= attributor.threshold) is supported
