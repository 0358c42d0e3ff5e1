"""Labelled data: files, label rules, and what is refused."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import DataError
from crag.papers.evaluator.pairs import (
    Labelled,
    Pair,
    QuestionRow,
    folded,
    held_out,
    label_of,
    read_pairs,
    without_leaks,
)

ROW = {"question": "Who?", "title": "Ada", "text": "Ada did.", "label": 1}
GOLD: dict[str, Any] = {"question": "Who?", "subject_title": "Ada", "answers": ["Lovelace", "Ada"]}
PAGE_WITH, PAGE_WITHOUT = {"title": "Ada", "text": "Ada did."}, {"title": "Ada", "text": "She did."}
OTHER_WITH, OTHER_WITHOUT = {"title": "B", "text": "Ada's."}, {"title": "B", "text": "Rain."}


def written(folder: Path, *rows: object, name: str = "data.jsonl") -> Path:
    path = folder / name
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rule", "labels"),
    [
        ("title", [1, 1, 0, 0]),
        ("auto", [1, 0, 1, 0]),
    ],
)
@pytest.mark.parametrize(
    ("documents", "title"), [("documents", "subject_title"), ("ctxs", "s_wiki_title")]
)
def test_label_rules(
    tmp_path: Path, rule: Any, labels: list[float], documents: str, title: str
) -> None:
    row = {"question": "Who?", title: "Ada", "answers": ["Lovelace", "Ada"]}
    row[documents] = [PAGE_WITH, PAGE_WITHOUT, OTHER_WITH, OTHER_WITHOUT]
    assert [pair.label for pair in read_pairs(written(tmp_path, row), rule)] == labels


@pytest.mark.parametrize(
    ("document", "row", "rule", "label"),
    [
        ({**PAGE_WITHOUT, "label": 0.3, "answer": True}, GOLD, "auto", 0.3),
        ({**PAGE_WITHOUT, "answer": True}, GOLD, "auto", 1.0),
        ({**PAGE_WITH, "answer": False}, GOLD, "auto", 0.0),
        (PAGE_WITH, {"subject_title": "Ada"}, "auto", 1.0),
        (PAGE_WITHOUT, {"answers": ["x"]}, "title", None),
        (PAGE_WITHOUT, {}, "auto", None),
    ],
)
def test_auto_takes_what_the_row_has(
    document: dict[str, Any], row: dict[str, Any], rule: Any, label: float | None
) -> None:
    asked = QuestionRow.model_validate({"question": "Who?", "documents": []} | row)
    assert label_of(Labelled.model_validate(document), asked, rule) == label


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({**ROW, "label": "maybe"}, "label: .*valid number"),
        ({"question": "Who?", "text": "x"}, "label: Field required"),
        ("{question: 1}", "this is not JSON: "),
        ("[1]", "each line must be one JSON object"),
        ({**GOLD, "documents": ["Ada"]}, "documents.0: "),
        ({**GOLD, "documents": [{"title": "Ada"}]}, "documents.0.text: Field required"),
        ({"question": "Who?", "documents": [PAGE_WITH]}, "no field gives labels by the rule"),
        ({**GOLD, "documents": [PAGE_WITH], "action": "wrong"}, "action: "),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, row: object, problem: str) -> None:
    path = written(tmp_path, ROW, row)
    with pytest.raises(DataError, match=problem) as caught:
        read_pairs(path)
    assert (caught.value.path, caught.value.line) == (path, 2)
    assert "line 2" in str(caught.value)


def test_what_is_left_out_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        {**ROW, "label": 0},
        {**ROW, "text": " "},
        {**ROW, "text": "Other."},
        ROW,
        ROW,
        {**ROW, "title": "B"},
    ]
    with caplog.at_level(logging.WARNING):
        pairs = read_pairs(written(tmp_path, *rows))
    assert pairs == [
        Pair("Who?", "Ada", "Ada did.", 1.0),
        Pair("Who?", "Ada", "Other.", 1.0),
        Pair("Who?", "B", "Ada did.", 1.0),
    ]
    said = " ".join(record.message for record in caplog.records)
    assert "skipped 1 pair with an empty text" in said
    assert "skipped 2 repeated pairs" in said


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(st.lists(st.tuples(texts, st.sampled_from([0, 0.5, 1])), min_size=1, max_size=5))
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, float]]
) -> None:
    path = written(
        tmp_path_factory.mktemp("data"),
        *({"question": "Q", "text": text, "label": label} for text, label in rows),
    )
    best = {text: max(label for other, label in rows if other == text) for text, _ in rows}
    assert read_pairs(path) == [Pair("Q", "", text, label) for text, label in best.items()]


pairs_of = st.lists(
    st.builds(
        Pair,
        question=st.sampled_from(["a", "A ", "b", "c", "d e", "D  e", "f", "g"]),
        title=st.sampled_from(["", " ", "T", "t", "U", "V (x)", "W", "X", "Y"]),
        text=st.sampled_from(["x", "y"]),
        label=st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=12,
)


def apart(train: list[Pair], development: list[Pair]) -> bool:
    questions = {folded(one.question) for one in development}
    titles = {folded(one.title) for one in development if one.positive} - {""}
    return not any(
        folded(one.question) in questions or (one.positive and folded(one.title) in titles)
        for one in train
    )


@given(pairs_of, pairs_of, st.floats(0, 0.5), st.integers(0, 9))
def test_nothing_to_train_on_leaks(
    train: list[Pair], development: list[Pair], share: float, seed: int
) -> None:
    left = without_leaks(train, development)
    assert apart(left, development)
    assert [pair for pair in train if pair in left] == left
    assert left == train or not apart(train, development)
    rest, away = held_out(train, share, seed)
    assert (rest, away) == held_out(train, share, seed)
    assert apart(rest, away)
    assert len({folded(pair.question) for pair in away}) <= len(train) / 2 + 1
