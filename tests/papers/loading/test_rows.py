"""Rows of the published files and of ours: what is read, repaired and refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DataError
from crag.papers.bench.examples import Example
from crag.papers.loading.detect import load_examples

Write = Callable[..., Path]


def test_popqa(write: Write, popqa_rows: list[dict[str, Any]]) -> None:
    loaded = load_examples(write(popqa_rows), "popqa")
    first = loaded.examples[0]
    assert (first.id, first.task) == ("4000", "popqa")
    assert first.answers == (("mathematician", "mathematicians"),)
    assert first.gold_titles == ("Ada Lovelace",)
    assert first.extra["prop"] == "occupation"
    assert [one.metadata for one in first.documents] == [
        {"title": "Ada Lovelace", "id": "w0", "position": 0},
        {"title": "Elsewhere", "id": "passage-2", "position": 1},
    ]
    assert loaded.notes == ["data.jsonl: it has 8 rows; the published test set has 1399"]


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"question": "Milk is white.", "answers": ["true"]}, "true"),
        ({"claim": "Milk is white.", "answers": ["REFUTES"]}, "false"),
        ({"claim": "Milk is white.", "label": "SUPPORTS"}, "true"),
        ({"claim": "Milk is white.", "label": False}, "false"),
    ],
)
def test_pubhealth(write: Write, row: dict[str, Any], answer: str) -> None:
    loaded = load_examples(write([{**row, "ctxs": []}]), "pubhealth")
    assert loaded.examples[0].question == "Milk is white."
    assert loaded.examples[0].answers == ((answer,),)


def test_arc(write: Write, arc_row: dict[str, Any]) -> None:
    example = load_examples(write([arc_row]), "arc").examples[0]
    assert example.choices == (("A", "ruler"), ("B", "balance"), ("C", "cup"), ("D", "clock"))
    assert (example.answers, example.id) == ((("B",),), "Mercury_7")


def test_numeric_keys_stay_as_published_and_are_counted(
    write: Write, arc_row: dict[str, Any]
) -> None:
    choices = {"label": ["1", "2", "3", "4"], "text": arc_row["choices"]["text"]}
    numeric = {**arc_row, "id": "n", "choices": choices, "answerKey": "2"}
    loaded = load_examples(write([arc_row, numeric]), "arc")
    assert [one.answers for one in loaded.examples] == [(("B",),), (("2",),)]
    assert any("numeric answer key" in note and "(line 2)" in note for note in loaded.notes)


def test_three_and_five_options_are_kept_and_counted(write: Write, arc_row: dict[str, Any]) -> None:
    rows = [
        {
            **arc_row,
            "id": str(size),
            "choices": {"label": list("ABCDE"[:size]), "text": [f"o{n}" for n in range(size)]},
        }
        for size in (3, 4, 5)
    ]
    loaded = load_examples(write(rows), "arc")
    assert [len(example.choices) for example in loaded.examples] == [3, 4, 5]
    assert any("5 options" in note and "(line 3)" in note for note in loaded.notes)
    assert any("3 options" in note and "(line 1)" in note for note in loaded.notes)


def test_biographies(write: Write) -> None:
    row = {
        "input": "Question: Tell me a bio of Ada.",
        "topic": "Ada",
        "cat": ["rare"],
        "output": "",
        "ctxs": [{"title": "Ada", "text": "Ada wrote."}],
    }
    example = load_examples(write([row]), "biography").examples[0]
    assert (example.question, example.answers) == ("Question: Tell me a bio of Ada.", ())
    assert (example.extra["topic"], example.gold_titles) == ("Ada", ("Ada",))


def test_empty_and_missing_contexts_are_kept_and_counted(
    write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    popqa_rows[1]["ctxs"] = []
    popqa_rows[2]["ctxs"] = [{"title": "x", "text": "  "}, {"title": "y"}, {"text": "Real."}]
    del popqa_rows[3]["ctxs"]
    loaded = load_examples(write(popqa_rows), "popqa", format="self-rag")
    assert [len(one.documents) for one in loaded.examples[:4]] == [2, 0, 1, 0]
    assert "data.jsonl: kept although it has no passage: 2 (line 2, 4)" in loaded.notes
    assert "data.jsonl: skipped passages without text: 2 (line 3, 3)" in loaded.notes


def test_a_truncated_download_loses_its_last_line_only(
    write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    path = write(popqa_rows)
    path.write_bytes(path.read_bytes()[:-40])
    loaded = load_examples(path, "popqa")
    assert len(loaded.examples) == 7
    assert [one.place for one in loaded.refused] == ["data.jsonl, line 8"]
    assert "download it again" in loaded.refused[0].reason


def test_duplicates_are_refused_but_namesakes_are_not(
    write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    first = popqa_rows[0]
    rows = [
        *popqa_rows,
        {**first, "id": 1},
        {**first, "answers": ["poet"]},
        {**first, "id": 2, "answers": ["poet"]},
    ]
    loaded = load_examples(write(rows), "popqa")
    assert [one.id for one in loaded.examples][8:] == ["2"]
    assert [(one.place, one.reason) for one in loaded.refused] == [
        ("data.jsonl, line 9", "it repeats the row with id '4000'"),
        ("data.jsonl, line 10", "the id '4000' was already used by another row"),
    ]


def test_a_long_answer_is_a_reference_where_nobody_annotated(
    write: Write, asqa_item: dict[str, Any]
) -> None:
    bare = {**asqa_item, "sample_id": "-43", "annotations": []}
    none = {**asqa_item, "sample_id": "-44", "annotations": [], "answer": None}
    loaded = load_examples(write([asqa_item, bare, none], "asqa.json"), "asqa")
    annotated = [one["long_answer"] for one in asqa_item["annotations"]]
    told = [one.extra["references"] for one in loaded.examples]
    assert told == [annotated, [asqa_item["answer"]], []]
    assert loaded.examples[0].extra["reference"] == asqa_item["answer"]


def row(**changed: Any) -> dict[str, Any]:
    documents = [
        {"title": "Ada", "text": "Ada was a poet.", "answer": True, "url": "https://example.org/a"},
        {"title": "Bo", "text": "Bo was not.", "answer": False},
    ]
    return {
        "id": "q1",
        "question": "What was Ada?",
        "answers": ["poet"],
        "subject_title": "Ada",
        "documents": documents,
    } | changed


def test_documents_keep_their_labels(write: Write) -> None:
    example = load_examples(write([row()]), "qa").examples[0]
    assert [one.metadata["answer"] for one in example.documents] == [True, False]
    assert example.documents[0].metadata["url"] == "https://example.org/a"
    assert example.gold_titles == ("Ada",)


def test_actions_need_no_answers(write: Write) -> None:
    documents = [
        {"title": "Ada", "text": "Ada was a poet.", "label": 1},
        {"title": "Bo", "text": "Bo sang.", "label": 0},
    ]
    given = row(action="correct", documents=documents)
    del given["answers"]
    example = load_examples(write([given]), "popqa").examples[0]
    assert (example.answers, example.extra["action"]) == ((), "correct")
    assert [one.metadata["relevant"] for one in example.documents] == [True, False]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "count", "right"),
    [
        ("popqa_dev.jsonl", 100, lambda one: one.gold_titles and one.answers),
        ("actions_dev.jsonl", 236, lambda one: one.extra["action"] and len(one.documents) == 10),
        ("covidqa_dev.jsonl", 300, lambda one: one.answers and one.documents),
    ],
)
def test_development_data(
    data: Path, name: str, count: int, right: Callable[[Example], Any]
) -> None:
    loaded = load_examples(data / "qa" / name, "qa")
    assert (len(loaded.examples), loaded.refused) == (count, [])
    assert all(right(example) for example in loaded.examples)


COLUMNS = ["id", "subj", "prop", "s_wiki_title", "s_pop", "question", "possible_answers"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "popQA.tsv"
    rows = [
        ["1", "Ada", "occupation", "Ada Lovelace", "41", "What was Ada?", '["poet", "countess"]'],
        ["2", "Bob", "sport", "Bob Star", "90210", "What did Bob play?", '["golf"]'],
        ["3", "Cy", "genre", "Cy", "", "What did Cy sing?", '["blues"]'],
        ["4", "Di", "genre", "Di", "7", "What did Di sing?", "blues"],
        ["5", "Ed", "genre"],
        ["6", 'Flo "F"', "genre", "Flo", "99", "What did Flo sing?", '["soul"]'],
    ]
    path.write_text("\n".join("\t".join(row) for row in [COLUMNS, *rows]), encoding="utf-8")
    return path


def test_the_long_tail_is_the_task(table: Path) -> None:
    loaded = load_examples(table, "popqa")
    assert [example.id for example in loaded.examples] == ["1", "6"]
    assert loaded.examples[0].answers == (("poet", "countess"),)
    assert loaded.examples[0].gold_titles == ("Ada Lovelace",)
    assert {one.place: one.reason.split(";")[0] for one in loaded.refused} == {
        "popQA.tsv, line 4": "'s_pop' is ''",
        "popQA.tsv, line 5": "'possible_answers' is not a JSON list of texts",
        "popQA.tsv, line 6": "it does not have as many cells as the header",
    }
    assert any(
        "left out subjects viewed 100 times a month or more: 1 (line 3)" in note
        for note in loaded.notes
    )


def test_json_lines_with_answers_as_text_or_list(write: Callable[..., Path]) -> None:
    row: dict[str, Any] = {"id": 1, "subj": "Ada", "s_pop": 5, "question": "What was Ada?"}
    rows = [
        {**row, "possible_answers": json.dumps(["poet"])},
        {**row, "id": 2, "question": "And Di?", "possible_answers": ["singer"]},
    ]
    loaded = load_examples(write(rows), "popqa")
    assert [one.answers for one in loaded.examples] == [(("poet",),), (("singer",),)]


def test_items_under_data_as_self_rag_ships_them(tmp_path: Path, asqa_item: dict[str, Any]) -> None:
    path = tmp_path / "asqa.json"
    ctxs = [{"title": "Own", "text": "Its own passage."}]
    path.write_text(json.dumps({"data": [{**asqa_item, "ctxs": ctxs}]}), encoding="utf-8")
    example = load_examples(path, "asqa").examples[0]
    assert [one.metadata["title"] for one in example.documents] == ["Own"]


def test_a_truncated_document_is_an_error(write: Write, asqa_item: dict[str, Any]) -> None:
    path = write([asqa_item], "asqa.json")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="download it again"):
        load_examples(path, "asqa")


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"question": "caf\xe9"}\n')
    with pytest.raises(DataError, match=r"not UTF-8 \(byte 17\)"):
        load_examples(path, "qa")


def test_byte_order_mark_and_windows_lines_are_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    row = '{"question": "q\\r?", "answers": ["a"]}'
    path.write_bytes(b"\xef\xbb\xbf" + f"{row}\r\n".encode())
    loaded = load_examples(path, "qa")
    assert loaded.examples[0].question == "q\r?"
    assert loaded.notes[:2] == [
        "data.jsonl: removed the byte-order mark",
        "data.jsonl: removed Windows line ends",
    ]
