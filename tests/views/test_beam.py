from typing import Any

import pytest
from langchain_core.documents import Document

from crag.errors import CragError
from crag.graph import build_self_rag
from crag.papers.views import Walk, critique_table, draw_beam, walk
from crag.papers.views.beam import beam_tree
from crag.parts import Candidate
from crag.reflection.testing import FakeReflection, fake_candidate
from crag.testing import FakeRetriever

LONG = {"form": "long", "beam_width": 2}
SCRIPT: dict[tuple[str, str | None], Candidate] = {
    ("", "x"): fake_candidate("A. ", relevance=0.9, utility=None, ending="retrieve"),
    ("", "y"): fake_candidate("B. ", relevance=0.8, utility=None, ending="retrieve"),
    ("A. ", "x"): fake_candidate("A-x. ", relevance=0.1),
    ("A. ", "y"): fake_candidate("A-y. ", relevance=0.9),
    ("B. ", "x"): fake_candidate("B-x. ", relevance=0.5),
    ("B. ", "y"): fake_candidate("B-y. ", relevance=0.2),
}


@pytest.fixture
def run(make_parts: Any) -> Walk:
    parts = make_parts(
        retriever=FakeRetriever(documents=[Document("x"), Document("y")]),
        reflection=FakeReflection(SCRIPT),
    )
    return walk(build_self_rag(parts), "Which?", LONG)


def test_every_candidate_knows_what_it_continues(run: Walk) -> None:
    twigs = beam_tree(run)
    texts = [twig.critique["text"].strip() for twig in twigs]
    parents = [None if twig.parent is None else texts[twig.parent] for twig in twigs]
    assert dict(zip(texts, parents, strict=True)) == {
        "A.": None,
        "B.": None,
        "A-x.": "A.",
        "A-y.": "A.",
        "B-x.": "B.",
        "B-y.": "B.",
    }


def test_the_picture_says_the_answer(run: Walk) -> None:
    picture = draw_beam(run)
    assert repr(picture) == "6 candidates in 2 segments; the answer: A. → A-y."
    assert picture.png().startswith(b"\x89PNG")


def test_the_table_marks_the_answer_and_counts_segments(run: Walk) -> None:
    lines = critique_table(run.state["reflection"]["critiques"]).markdown().splitlines()
    assert lines[0].startswith("| segment | passage | candidate | IsRel |")
    bold = [line.split("|")[3].strip() for line in lines if line.startswith("| **")]
    assert bold == ["**A.**", "**A-y.**"]
    assert "beyond a beam of 2" in lines[-1]


def test_a_run_without_a_beam_says_how_to_get_one(make_parts: Any) -> None:
    parts = make_parts(reflection=FakeReflection(lambda *_: fake_candidate("Ada.")))
    short = walk(build_self_rag(parts), "Which?")
    with pytest.raises(CragError, match="form=long"):
        draw_beam(short)
    assert critique_table(short.state["reflection"]["critiques"]).columns[0] == "passage"
