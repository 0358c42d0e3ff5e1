"""What the notebooks show of runs, scores and tables."""

from typing import Any

import pytest

from crag.graph import build_crag, build_self_crag
from crag.papers.views import Table, draw_scores, plain, walk
from crag.testing import FakeReflection, fake_candidate

WEB = [f"web:{name}" for name in ("rewrite", "search", "read_pages", "select")]
QUESTION = "Who wrote the first program?"


@pytest.mark.parametrize(
    ("score", "action", "between"),
    [
        (0.9, "correct", ["refine"]),
        (-0.9, "incorrect", WEB),
        (0.0, "ambiguous", ["refine", *WEB]),
    ],
)
def test_the_steps_of_each_action_in_the_order_of_the_graph(
    make_parts: Any, score: float, action: str, between: list[str]
) -> None:
    run = walk(build_crag(make_parts(score)), QUESTION)
    nodes = ["open_run", "retrieve", "grade", *between, "generate"]
    assert [step.node for step in run.steps] == nodes
    assert run.state["action"] == action
    assert run.steps[2].update["action"] == action
    assert repr(run) == " → ".join(nodes)


def test_a_walk_tells_what_each_node_wrote_once(make_parts: Any) -> None:
    told = walk(build_crag(make_parts(0.0)), QUESTION)._repr_markdown_()
    assert "**3 · grade**" in told
    assert "`action` **ambiguous**" in told
    assert "| **+0.00** | **Ada Lovelace** |" in told
    assert "`answer` Ada Lovelace did \\[1\\]." in told


def test_what_a_reflecting_run_decided_was_offered_and_judged_is_told(make_parts: Any) -> None:
    parts = make_parts(0.9, reflection=FakeReflection(lambda *_: fake_candidate("Ada did.")))
    told = walk(build_self_crag(parts), QUESTION, {"form": "long"})._repr_markdown_()
    assert "`choices` retrieve: " in told
    assert "`critiques` \n\n| segment | passage | candidate | IsRel |" in told


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
    assert "upper +0.50" in words
    assert "lower -0.50" in words
    data, metadata = picture._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert metadata["alt"] == repr(picture)


def test_a_table_in_markdown() -> None:
    table = Table(["score", "text"], [(0.5, "one"), (-1.0, None)], bold=[0], numeric=["score"])
    assert repr(table).splitlines() == [
        "| score | text |",
        "| ---: | --- |",
        "| **+0.50** | **one** |",
        "| -1.00 |  |",
    ]


def test_cells_are_text_whatever_they_hold() -> None:
    assert plain("a|b *c* <d>\n[e]") == "a\\|b \\*c\\* &lt;d\\> \\[e\\]"
