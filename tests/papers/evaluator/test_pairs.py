"""Labelled data: files, label rules, and what is refused."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import DataError
from crag.papers.evaluator.pairs import Pair, by_question, describe, label_of, read_pairs

ROW = {"question": "Who?", "title": "Ada", "text": "Ada did.", "label": 1}
GOLD: dict[str, Any] = {"question": "Who?", "subject_title": "Ada", "answers": ["Lovelace", "Ada"]}
PAGE_WITH, PAGE_WITHOUT = {"title": "Ada", "text": "Ada did."}, {"title": "Ada", "text": "She did."}
OTHER_WITH, OTHER_WITHOUT = {"title": "B", "text": "Ada's."}, {"title": "B", "text": "Rain."}


def written(folder: Path, *rows: object, name: str = "data.jsonl") -> Path:
    path = folder / name
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_jsonl_with_blank_lines_a_mark_and_emoji(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + json.dumps(ROW), "", {**ROW, "text": "🙂\u2028東京"})
    assert read_pairs(path) == [
        Pair("Who?", "Ada", "Ada did.", 1.0),
        Pair("Who?", "Ada", "🙂\u2028東京", 1.0),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_with_quotes_and_newlines(tmp_path: Path, end: str) -> None:
    path = tmp_path / "data.csv"
    rows = [
        "question,title,text,label",
        'Who?,Ada,"She said ""no"", twice.',
        'And left.",true',
        "Who?,,a line\u2028separator \x0c stays,0.25",
    ]
    path.write_bytes(("\ufeff" + end.join(rows)).encode())
    assert read_pairs(path) == [
        Pair("Who?", "Ada", 'She said "no", twice.\nAnd left.', 1.0),
        Pair("Who?", "", "a line\u2028separator \x0c stays", 0.25),
    ]


@pytest.mark.parametrize(
    ("label", "value"),
    [(0, 0), (1, 1), (0.4, 0.4), (True, 1), (False, 0), ("yes", 1), (" No ", 0), ("0.5", 0.5)],
)
def test_labels(tmp_path: Path, label: object, value: float) -> None:
    (pair,) = read_pairs(written(tmp_path, {**ROW, "label": label}))
    assert pair.label == value
    assert pair.positive == (value >= 0.5)


@pytest.mark.parametrize(
    ("rule", "labels"),
    [
        ("title", [1, 1, 0, 0]),
        ("answer", [1, 0, 1, 0]),
        ("graded", [1, 0.5, 0.2, 0]),
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


def test_auto_takes_what_the_row_has() -> None:
    assert label_of({**PAGE_WITHOUT, "label": 0.3, "answer": True}, GOLD, "auto") == 0.3
    assert label_of({**PAGE_WITHOUT, "answer": True}, GOLD, "auto") == 1.0
    assert label_of({**PAGE_WITH, "answer": "no"}, GOLD, "answer") == 0.0
    assert label_of(PAGE_WITHOUT, {"subject_title": "Ada"}, "auto") == 1.0
    assert label_of(PAGE_WITHOUT, {"answers": ["x"]}, "graded") is None
    assert label_of(PAGE_WITHOUT, {}, "auto") is None


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({**ROW, "label": "maybe"}, r"'maybe' is not a label: a label is a number from 0 "),
        ({**ROW, "label": 1.5}, r"1\.5 is not a label"),
        ({**ROW, "label": None}, "None is not a label"),
        ('{"question": "Who?", "text": "x", "label": NaN}', "nan is not a label"),
        ({"question": "Who?", "text": "x"}, "'label' is missing"),
        ({"text": "x", "label": 1}, "'question' is missing"),
        ({**ROW, "question": "  "}, "the question is empty"),
        ({**ROW, "text": None}, "'text' is None; it must be text"),
        ({**ROW, "title": 7}, "'title' is 7; it must be text"),
        ({**ROW, "text": "\ud83d"}, "surrogates not allowed"),
        ("{question: 1}", "this is not JSON: Expecting property name"),
        ("[1]", "each line must be one JSON object"),
        ({**GOLD, "documents": "Ada"}, "must be a list of objects"),
        ({**GOLD, "documents": ["Ada"]}, "must be a list of objects"),
        ({**GOLD, "documents": [{"title": "Ada"}]}, "'text' is missing"),
        ({**GOLD, "answers": "Ada", "documents": [PAGE_WITH]}, "must be a list of texts"),
        ({"question": "Who?", "documents": [PAGE_WITH]}, "no field gives labels by the rule"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, row: object, problem: str) -> None:
    path = written(tmp_path, ROW, row)
    with pytest.raises(DataError, match=problem) as caught:
        read_pairs(path)
    assert (caught.value.path, caught.value.line) == (path, 2)
    assert "line 2" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it holds no pair"),
        (b"\n\n", "it holds no pair"),
        (b'{"question": "caf\xe9"}', "it is not UTF-8 .byte 17.; save it as UTF-8"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=problem) as caught:
        read_pairs(path)
    assert caught.value.line is None


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: No such file"):
        read_pairs(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="Is a directory"):
        read_pairs(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("question,title,text\nWho?,Ada,Ada did.\n", "'label' is missing"),
        ("question,text,label\nWho?,Ada did.\n", "None is not a label"),
        ('question,text,label\n"Who"?,x,1\n', "expected after"),
        ('question,text,label\n"Who?,x,1\n', "unexpected end of data"),
    ],
)
def test_a_csv_that_is_wrong(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=problem) as caught:
        read_pairs(path)
    assert caught.value.line == 2


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
    assert "used the higher label of 1 pair" in said


def test_clean_data_is_read_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_pairs(written(tmp_path, ROW))
    assert not caplog.records


def test_only_empty_texts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataError, match="it holds no pair"):
        read_pairs(written(tmp_path, {**ROW, "text": ""}))
    assert "empty text" in caplog.text


def test_a_card_names_and_counts_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, ROW, {**ROW, "text": "x", "label": 0.2})
    said = describe(path, read_pairs(path), "CC0-1.0")
    assert (said.name, said.pairs, said.positives, said.licence) == ("data.jsonl", 2, 1, "CC0-1.0")
    assert len(said.sha256) == 64


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


def test_grouping_keeps_the_order() -> None:
    pairs = [Pair(question, "", text, 0.0) for question, text in ("ax", "by", "az")]
    assert by_question(pairs) == {"a": [pairs[0], pairs[2]], "b": [pairs[1]]}
