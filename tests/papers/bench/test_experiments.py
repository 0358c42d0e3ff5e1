"""Experiments: the files that ship, what is wrong with others, and the units that they plan."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Template
from langchain_core.documents import Document

from crag.errors import DataError
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import (
    Unit,
    is_relevant,
    plan,
    read_experiment,
    read_tables,
    retrieval_accuracy,
    without_relevant,
)
from crag.papers.bench.summary import metrics_of
from crag.papers.released.reflection import released_settings
from crag.reflection.prompt_format import base_prompt
from tests.papers.bench.runs import examples, experiment, variant

ROOT = Path(__file__).parents[3]
SHIPPED = [
    f"{path}:{table}"
    for path in sorted((ROOT / "papers" / "tables").glob("*.toml"))
    for table in read_tables(path)
]
SMALL = """
[small]
name = "Small"
task = "popqa"
baseline = "rag"

[[small.variant]]
name = "rag"
method = "rag"
"""


def written(folder: Path, text: str) -> str:
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("place", SHIPPED, ids=lambda place: place.rpartition(":")[2])
def test_every_shipped_experiment_can_be_run(place: str) -> None:
    experiment = read_experiment(place)
    assert metrics_of(experiment)
    assert len(experiment.variants) >= 4


def test_changes_take_the_place_of_settings(tmp_path: Path) -> None:
    text = SMALL + 'settings = { k = 3, upper = "none" }\n'
    (variant,) = read_experiment(written(tmp_path, text), {"k": "7"}).variants
    assert released_settings(variant.settings).k == 7
    assert released_settings(variant.settings).upper is None


def test_a_sweep_runs_each_variant_with_each_setting(tmp_path: Path) -> None:
    text = SMALL.replace('"rag"', '"rag, k=1"', 1)
    text = text.replace(
        "[[small.variant]]", "[[small.sweep]]\nk = 1\n\n[[small.sweep]]\nk = 2\n\n[[small.variant]]"
    )
    variants = read_experiment(written(tmp_path, text)).variants
    assert [(one.name, one.settings["k"]) for one in variants] == [("rag, k=1", 1), ("rag, k=2", 2)]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('method = "rag"', 'method = "rug"', "method 'rug' is none of crag, self_crag"),
        ('method = "rag"', 'method = "rag"\nsettings = { k = 0 }', "setting 'k' cannot be 0"),
        ('method = "rag"', 'method = "rag"\nsettings = { kk = 1 }', "'kk'"),
        ('baseline = "rag"', 'baseline = "crag"', "the baseline 'crag' is not a variant"),
        ('name = "Small"', 'name = "Small"\nseeds = []', "seeds: List should have at least 1 item"),
        ("[[small.variant]]", "[[small.variant", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(DataError, match=r"small\.toml") as raised:
        read_experiment(written(tmp_path, SMALL.replace(old, new)))
    assert told in str(raised.value)


def test_the_template_for_the_published_model_writes_its_prompt() -> None:
    path = ROOT / "papers" / "tables" / "selfrag_chat_template.jinja"
    messages = [{"role": "system", "content": "rules"}, {"role": "user", "content": "Who?"}]
    written = Template(path.read_text("utf-8")).render(messages=messages)
    assert written == base_prompt("Who?")


def made(questions: int, hits: int) -> list[Example]:
    return [
        Example(
            str(number), "popqa", f"Who is {number}?", (("a",),), gold_titles=("gold",),
            documents=(
                Document("x", metadata={"title": "gold" if number < hits else "other"}),
                Document("y", metadata={"title": "else"}),
            ),
        )
        for number in range(questions)
    ]  # fmt: skip


@given(st.integers(1, 40), st.data())
def test_exactly_the_share_is_left_and_nothing_else_goes(
    questions: int, data: st.DataObject
) -> None:
    before = made(questions, data.draw(st.integers(0, questions)))
    share = data.draw(st.floats(0, retrieval_accuracy(before)))
    seed = data.draw(st.integers(0, 5))
    left = without_relevant(before, share, seed)
    assert sum(any(is_relevant(d, e) for d in e.documents) for e in left) == round(
        share * questions
    )
    for one, other in zip(before, left, strict=True):
        rest = [document for document in one.documents if not is_relevant(document, one)]
        assert list(other.documents) in ([*one.documents], rest)
    assert left == without_relevant(before, share, seed)


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
