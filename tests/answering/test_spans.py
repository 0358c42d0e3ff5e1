"""What is set off in a quotation is a whole date, amount or name, or nothing is."""

import pytest

from crag.answering.quoting import set_off
from crag.reading import Span


@pytest.mark.parametrize(
    ("question", "text", "found", "shown"),
    [
        ("What is the limit?", "The limit is 1,260.50 EUR a night.", "260", "1,260.50 EUR"),
        ("When does it end?", "It ends on 30 June 2025 and not before.", "June", "30 June 2025"),
        ("When does it end?", "It ends on 2025-06-30.", "06", "2025-06-30"),
        ("How long?", "It runs for 36 months.", "36", "36 months"),
        ("Who was there?", "Present: Ines Okafor, Tom Hale and Priya Raman.", "Tom",
         "Ines Okafor, Tom Hale and Priya Raman"),
        ("How long?", "It is 16 weeks. Tell us 8 weeks before.", "16 weeks. Tell us 8", "16 weeks"),
        ("What is the rate limit?", "The rate limit is kept low.", "rate limit", None),
        ("Which forms?", "Which forms do I need? Ask us.", "Which forms do", None),
        ("What is the limit?", "The limit is 3 or 4.", "", None),
        ("Who has the key to the store?", "Gate: Ines\nCold store: Bea", "Ines", None),
        ("Who has the key to the store?", "Gate: Ines\nCold store: Bea", "Bea", "Bea"),
        ("On which shelf is the long level?", "article: Long level\nshelf: B2", "B2", "B2"),
    ],
)  # fmt: skip
def test_the_whole_is_set_off(question: str, text: str, found: str, shown: str | None) -> None:
    start = text.index(found)
    span = Span(start=start, end=start + len(found), score=0.5 if found else -0.5)
    place = set_off(question, text, span, (0, len(text)))
    assert (place and text[slice(*place)]) == shown
    assert set_off(question, text, span, (0, start)) is None
    assert set_off(question, text, {**span, "score": 0.0}, (0, len(text))) is None


def test_what_is_set_off_may_be_all_of_a_quotation_and_takes_nothing_beside_it() -> None:
    assert set_off("How long?", "30 days.", Span(start=0, end=7, score=0.5), (0, 7)) == (0, 7)
    span = Span(start=4, end=10, score=0.5)
    assert set_off("Which?", "Rome(Oslo)Kiel", span, (0, 14)) == (4, 10)
