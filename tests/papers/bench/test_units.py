"""The plan of a run, and documents removed at random (CRAG, Fig. 3)."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.papers.bench.examples import Example
from crag.papers.bench.units import (
    Unit,
    is_relevant,
    plan,
    retrieval_accuracy,
    without_relevant,
)
from tests.papers.bench.runs import examples, experiment, variant


def made(questions: int, hits: int) -> list[Example]:
    return [
        Example(
            str(number),
            "popqa",
            f"Who is {number}?",
            (("a",),),
            documents=(
                Document("x", metadata={"title": "gold" if number < hits else "other"}),
                Document("y", metadata={"title": "else"}),
            ),
            gold_titles=("gold",),
        )
        for number in range(questions)
    ]


@given(st.integers(1, 40), st.data())
def test_exactly_the_share_is_left_and_nothing_else_goes(
    questions: int, data: st.DataObject
) -> None:
    given_ = made(questions, data.draw(st.integers(0, questions)))
    share = data.draw(st.floats(0, retrieval_accuracy(given_)))
    seed = data.draw(st.integers(0, 5))
    left = without_relevant(given_, share, seed)
    assert sum(any(is_relevant(d, e) for d in e.documents) for e in left) == round(
        share * questions
    )
    for before, after in zip(given_, left, strict=True):
        others = [one for one in before.documents if not is_relevant(one, before)]
        assert list(after.documents) in ([*before.documents], others)
    assert left == without_relevant(given_, share, seed)


def test_a_lower_share_loses_the_same_questions_and_more() -> None:
    given_ = made(40, 30)
    lost = [
        {
            e.id
            for e, left in zip(given_, without_relevant(given_, share, 7), strict=True)
            if e != left
        }
        for share in (0.6, 0.4, 0.1)
    ]
    assert lost[0] < lost[1] < lost[2]
    assert without_relevant(given_, 0.4, 7) != without_relevant(given_, 0.4, 8)


def test_conditions_and_seeds_multiply_only_where_they_change_something(tmp_path: Path) -> None:
    compared = experiment(
        variant("rag"), variant("no_retrieval"), retrieval_accuracies=[0.5, 0.25], seeds=[3, 4]
    )
    units = list(plan(compared, examples(tmp_path)))
    told = {(unit.variant.name, *unit.condition.values(), unit.seed) for unit in units}
    assert told == {
        ("rag", 3), ("rag", 0.5, 3), ("rag", 0.25, 3), ("rag", 0.5, 4), ("rag", 0.25, 4),
        ("no_retrieval", 3),
    }  # fmt: skip
    assert len(units) == 6 * 4


def test_a_key_changes_with_all_that_an_answer_depends_on(tmp_path: Path) -> None:
    first, second, *_ = examples(tmp_path)
    unit = Unit(variant("rag"), first, {}, 0)
    others = [
        unit._replace(example=second),
        unit._replace(example=first._replace(documents=first.documents[:1])),
        unit._replace(variant=variant("rag", k=3)),
        unit._replace(variant=variant("crag")),
        unit._replace(condition={"retrieval_accuracy": 0.5}),
        unit._replace(seed=1),
    ]
    keys = {unit.key("m"), unit.key("n"), *(other.key("m") for other in others)}
    assert len(keys) == len(others) + 2
    assert unit.key("m") == Unit(variant("rag"), examples(tmp_path)[0], {}, 0).key("m")
