from typing import Any

import pytest

from crag.graph import build_crag
from crag.papers.views import draw_scores, walk


def words_of(picture: Any) -> str:
    """Return all text in a picture."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in picture.figure.findobj(Text))


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (0.9, "Correct: the best of 2 documents scores +0.90 (upper 0.50, lower -0.50)."),
        (0.0, "Ambiguous: the best of 2 documents scores +0.00 (upper 0.50, lower -0.50)."),
        (-0.9, "Incorrect: the best of 2 documents scores -0.90 (upper 0.50, lower -0.50)."),
    ],
)
def test_scores_against_the_thresholds(make_parts: Any, score: float, said: str) -> None:
    run = walk(build_crag(make_parts({"Ada Lovelace": score})), "Who?")
    picture = draw_scores(run.state)
    assert repr(picture) == f"{said} Ada Lovelace {score:+.2f}; Charles Babbage -1.00"
    words = words_of(picture)
    assert "Charles Babbage" in words
    assert "upper\n+0.50" in words
    assert "lower\n-0.50" in words
    assert picture.png()
