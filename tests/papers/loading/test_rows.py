"""Rows of the published files and of ours: what is read, repaired and refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DataError
from crag.papers.bench.examples import TaskName
from crag.papers.loading import load_examples, sample

Write = Callable[..., Path]
ARC = {
    "id": "Mercury_7", "question": "Which tool measures mass?", "answerKey": "B",
    "choices": {"label": ["A", "B", "C", "D"], "text": ["ruler", "balance", "cup", "clock"]},
}  # fmt: skip
BIOGRAPHY = {"input": "Question: Tell me a bio of Ada.", "topic": "Ada", "cat": ["rare"]}


def test_popqa(write: Write, popqa_rows: list[dict[str, Any]]) -> None:
    loaded = load_examples(write(popqa_rows), "popqa")
    first = loaded.examples[0]
    assert (first.id, first.answers) == ("4000", (("mathematician", "mathematicians"),))
    assert first.gold_titles == ("Ada Lovelace",)
    assert [one.metadata for one in first.documents] == [
        {"title": "Ada Lovelace", "id": "w0", "position": 0},
        {"title": "Elsewhere", "id": "passage-2", "position": 1},
    ]
    assert loaded.notes == []


@pytest.mark.parametrize(
    ("task", "row", "question", "answers"),
    [
        ("pubhealth", {"question": "Milk is.", "answers": ["true"]}, "Milk is.", "true"),
        ("pubhealth", {"claim": "Milk is.", "answers": ["REFUTES"]}, "Milk is.", "false"),
        ("pubhealth", {"claim": "Milk is.", "label": "SUPPORTS"}, "Milk is.", "true"),
        ("pubhealth", {"claim": "Milk is.", "label": False}, "Milk is.", "false"),
        ("arc", ARC, "Which tool measures mass?", "B"),
        ("biography", BIOGRAPHY, "Question: Tell me a bio of Ada.", ""),
    ],
)
def test_rows_of_other_tasks(
    write: Write, task: TaskName, row: dict[str, Any], question: str, answers: str
) -> None:
    example = load_examples(write([{**row, "ctxs": []}]), task).examples[0]
    assert example.question == question
    assert example.answers == (((answers,),) if answers else ())
    assert example.choices == (tuple(zip("ABCD", ARC["choices"]["text"])) if row == ARC else ())  # type: ignore[index] # noqa: B905
    assert example.gold_titles == (("Ada",) if row == BIOGRAPHY else ())


def test_odd_options_and_numeric_keys_are_kept_and_counted(write: Write) -> None:
    sizes = [("1234", "2"), ("ABC", "B"), ("ABCD", "B"), ("ABCDE", "B")]
    rows = [
        {**ARC, "id": labels, "answerKey": key,
         "choices": {"label": list(labels), "text": [f"o{label}" for label in labels]}}
        for labels, key in sizes
    ]  # fmt: skip
    loaded = load_examples(write(rows), "arc")
    assert [len(one.choices) for one in loaded.examples] == [4, 3, 4, 5]
    assert [one.answers for one in loaded.examples] == [((key,),) for _, key in sizes]
    for note in ("numeric answer key", "3 options", "5 options"):
        assert any(note in one for one in loaded.notes)


def test_empty_and_missing_contexts_are_kept_and_counted(
    write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    popqa_rows[1]["ctxs"] = []
    popqa_rows[2]["ctxs"] = [{"title": "x", "text": "  "}, {"title": "y"}, {"text": "Real."}]
    del popqa_rows[3]["ctxs"]
    loaded = load_examples(write(popqa_rows), "popqa")
    assert [len(one.documents) for one in loaded.examples[:4]] == [2, 0, 1, 0]
    assert "data.jsonl: kept although it has no passage: 2 (line 2, 4)" in loaded.notes
    assert "data.jsonl: skipped passages without text: 2 (line 3, 3)" in loaded.notes


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"answers": ["a"]}, "question: it is missing"),
        ({"question": " ", "answers": ["a"]}, "question: "),
        ({"question": 3, "answers": ["a"]}, "question: "),
        ({"question": "half \ud83d", "answers": ["a"]}, "question: "),
        ({"question": "Q", "answers": []}, "'answers' is empty"),
        ({"question": "Q", "answers": [1]}, "answers.0: "),
        ({"question": "Q", "answers": ["a"], "documents": {}}, "documents: "),
        (ARC, "'answers' is empty"),
        ([], "it is list, not one JSON object"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_alone(write: Write, row: Any, reason: str) -> None:
    path = write([{"question": "Q", "answers": ["a"]}])
    path.write_text(path.read_text("utf-8") + json.dumps(row) + "\n", "utf-8")
    loaded = load_examples(path, "qa")
    assert [one.place for one in loaded.refused] == ["data.jsonl, line 2"]
    assert loaded.refused[0].reason.startswith(reason)


def test_a_truncated_download_loses_its_last_line_only(
    write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    path = write(popqa_rows)
    path.write_bytes(path.read_bytes()[:-40])
    loaded = load_examples(path, "popqa")
    assert len(loaded.examples) == 7
    assert [one.place for one in loaded.refused] == ["data.jsonl, line 8"]
    assert "download it again" in loaded.refused[0].reason


def test_ids_are_unique(write: Write, popqa_rows: list[dict[str, Any]]) -> None:
    loaded = load_examples(write([*popqa_rows, popqa_rows[0]]), "popqa")
    assert len(loaded.examples) == 8
    assert [(one.place, one.reason) for one in loaded.refused] == [
        ("data.jsonl, line 9", "the id '4000' was already used by another row"),
    ]


def test_items_of_alce_under_data_as_self_rag_ships_them(
    tmp_path: Path, asqa_item: dict[str, Any]
) -> None:
    path = tmp_path / "asqa.json"
    ctxs = [{"title": "Own", "text": "Its own passage."}]
    bare = {**asqa_item, "sample_id": "-43", "annotations": []}
    none = {**asqa_item, "sample_id": "-44", "annotations": [], "answer": None}
    path.write_text(json.dumps({"data": [{**asqa_item, "ctxs": ctxs}, bare, none]}), "utf-8")
    loaded = load_examples(path, "asqa")
    first = loaded.examples[0]
    assert (first.id, first.answers) == ("-42", (("France", "French team"), ("Brazil",)))
    assert [one.metadata["title"] for one in first.documents] == ["Own"]
    annotated = [one["long_answer"] for one in asqa_item["annotations"]]
    told = [list(one.references) for one in loaded.examples]
    assert told == [annotated, [asqa_item["answer"]], []]
    assert first.reference == asqa_item["answer"]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="download it again"):
        load_examples(path, "asqa")


def test_documents_of_ours_keep_their_labels(write: Write) -> None:
    documents = [
        {"title": "Ada", "text": "Ada was a poet.", "url": "https://example.org/a"},
        {"title": "Bo", "text": "Bo was not.", "label": 0},
    ]
    row = {"question": "What was Ada?", "answers": ["poet"], "subject_title": "Ada"}
    example = load_examples(write([row | {"documents": documents}]), "qa").examples[0]
    first, second = (one.metadata for one in example.documents)
    assert (first["url"], second["relevant"]) == ("https://example.org/a", False)
    assert example.gold_titles == ("Ada",)


@pytest.mark.data
@pytest.mark.parametrize(("name", "count"), [("popqa_dev.jsonl", 100), ("covidqa_dev.jsonl", 300)])
def test_development_data(data: Path, name: str, count: int) -> None:
    loaded = load_examples(data / "qa" / name, "qa")
    assert (len(loaded.examples), loaded.refused) == (count, [])
    assert all(example.answers and example.documents for example in loaded.examples)


def test_marks_line_ends_and_separators_within_texts_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    row = '{"question": "q\\r?\u2028b\x85c", "answers": ["a"]}'
    path.write_bytes(b"\xef\xbb\xbf" + f"{row}\r\n".encode())
    loaded = load_examples(path, "qa")
    assert loaded.examples[0].question == "q\r?\u2028b\x85c"
    path.write_bytes(b'{"question": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"not UTF-8 \(byte 17\)"):
        load_examples(path, "qa")


def test_a_limit_draws_the_same_examples_in_the_order_of_the_file(write: Write) -> None:
    rows = [{"id": str(n), "question": f"q{n}?", "answers": [str(n)]} for n in range(100)]
    loaded = load_examples(write(rows, "qa.jsonl"), "qa")
    drawn = sample(loaded, 10, 3)
    ids = [int(example.id) for example in drawn.examples]
    assert len(ids) == 10
    assert ids == sorted(ids)
    assert drawn == sample(loaded, 10, 3) != sample(loaded, 10, 4)
    assert "10 of 100 examples drawn with seed 3" in drawn.notes
