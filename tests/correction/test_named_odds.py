"""What a text loses for the names of a question that it lacks."""

import pytest

from crag.correction.naming import (
    EXACT_WEIGHT,
    LABEL_WEIGHT,
    NAME_WEIGHT,
    named_odds,
)


@pytest.mark.parametrize(
    ("question", "texts", "lost"),
    [
        ("What does 404 mean?", [("", "404 is late."), ("", "It is late.")], EXACT_WEIGHT),
        ('Who said "so be it"?', [("", "So be it, he said."), ("", "It is.")], EXACT_WEIGHT),
        ("What is paid in Rome?", [("", "Rome: 5"), ("", "Oslo: 6")], NAME_WEIGHT),
        ("Which limit counts?", [("Limit", "It is 5."), ("Price", "It is 6.")], LABEL_WEIGHT),
        ("Which limit counts?", [("", "The limit is 5."), ("", "It is 6.")], 0.0),
        ("What is paid in Kiel?", [("", "Rome: 5"), ("", "Oslo: 6")], 0.0),
    ],
)
def test_a_text_loses_for_a_name_that_another_has(
    question: str, texts: list[tuple[str, str]], lost: float
) -> None:
    assert named_odds(question, texts) == pytest.approx([0.0, -lost])


def test_a_name_counts_the_less_the_more_texts_have_it() -> None:
    texts = [("", "Rome: 5"), ("", "Rome: 6"), ("", "Oslo: 7")]
    assert named_odds("What is paid in Rome?", texts) == pytest.approx([0, 0, -NAME_WEIGHT / 2])
    assert named_odds("What is paid in Rome?", []) == []
