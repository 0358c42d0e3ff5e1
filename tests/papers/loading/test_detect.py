from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DataError, SettingsError
from crag.papers.bench.examples import Example, FormatName, Loaded
from crag.papers.loading.detect import detect, kept_apart, load_examples, sample

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("row", "format_"),
    [
        ({"question": "q", "answers": ["a"], "ctxs": []}, "self-rag"),
        ({"question": "q", "answers": ["a"], "top_contexts": []}, "self-rag"),
        ({"input": "q", "topic": "t"}, "self-rag"),
        ({"question": "q", "choices": {}, "answerKey": "A"}, "self-rag"),
        ({"question": "q", "possible_answers": "[]"}, "popqa"),
        ({"question": "q", "possible_answers": "[]", "answers": ["a"], "ctxs": []}, "self-rag"),
        ({"question": "q", "qa_pairs": [], "docs": []}, "alce"),
        ({"question": "q", "qa_pairs": [], "ctxs": []}, "alce"),
        ({"question": "q", "documents": []}, "ours"),
        ({"question": "q", "answers": ["a"]}, "ours"),
    ],
)
@pytest.mark.parametrize("name", ["data.jsonl", "data.json"])
def test_formats_are_told_by_their_fields(
    write: Write, row: dict[str, Any], format_: FormatName, name: str
) -> None:
    assert detect(write([row], name)) == format_


def test_formats_are_told_by_their_shape(tmp_path: Path) -> None:
    table, pairs = tmp_path / "popQA.tsv", tmp_path / "test_popqa.txt"
    table.write_text("id\tquestion\n", encoding="utf-8")
    pairs.write_text("Who? [SEP] Ada.\t1\n", encoding="utf-8")
    assert (detect(table), detect(pairs), detect(tmp_path)) == ("popqa", "crag", "crag")


def test_two_formats_in_one_file_must_be_named(write: Write) -> None:
    path = write([{"question": "q", "answers": ["a"], "ctxs": [], "documents": []}])
    with pytest.raises(DataError, match="it looks like ours, self-rag"):
        load_examples(path, "qa")
    assert len(load_examples(path, "qa", format="ours").examples) == 1


def test_passages_of_the_next_row_stop_the_run(
    write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    contexts = [row["ctxs"] for row in popqa_rows]
    moved = [
        {**row, "ctxs": ctxs}
        for row, ctxs in zip(popqa_rows, [*contexts[1:], contexts[0]], strict=True)
    ]
    with pytest.raises(DataError, match=r"each row has the passages of the row at -1 \(overlap"):
        load_examples(write(moved), "popqa")


def test_passages_that_fit_neighbours_for_a_while_are_named(
    write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    contexts = [row["ctxs"] for row in popqa_rows]
    for row, ctxs in zip(popqa_rows[4:7], contexts[5:8], strict=True):
        row["ctxs"] = ctxs
    loaded = load_examples(write(popqa_rows), "popqa")
    assert "data.jsonl: near id '4005' passages fit neighbouring questions better" in loaded.notes


@pytest.fixture
def hundred(write: Write) -> Path:
    rows = [{"id": str(n), "question": f"q{n}?", "answers": [str(n)]} for n in range(100)]
    return write(rows, "qa.jsonl")


def test_a_limit_draws_the_same_examples_in_the_order_of_the_file(hundred: Path) -> None:
    loaded = load_examples(hundred, "qa")
    drawn = sample(loaded, 10, 3)
    ids = [int(example.id) for example in drawn.examples]
    assert len(ids) == 10
    assert ids == sorted(ids)
    assert drawn == sample(loaded, 10, 3) != sample(loaded, 10, 4)
    assert "10 of 100 examples drawn with seed 3" in drawn.notes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"task": "poetry"}, "setting 'task' cannot be 'poetry': choose one of popqa"),
        ({"format": "xml"}, "setting 'format' cannot be 'xml': choose one of auto"),
    ],
)
def test_wrong_settings_are_refused(hundred: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_examples(hundred, **{"task": "qa", **options})  # type: ignore[arg-type]


def test_questions_and_subjects_of_training_files_are_refused(write: Write) -> None:
    pairs = write([
        {"question": "What is Ada's job?", "title": "Ada", "text": "Ada counted.", "label": 1},
        {"question": "What is Ada's job?", "title": "Cy", "text": "Cy sang.", "label": 0},
    ])  # fmt: skip
    asked, same_page, fresh = (
        Example(question, "popqa", question, (("x",),), gold_titles=(title,))
        for question, title in (
            ("what is  ADA's job", "Di"), ("Where was Ada born?", "ada"), ("Who is Cy?", "Cyrus"),
        )
    )  # fmt: skip
    found = kept_apart(Loaded([asked, same_page, fresh], [], ["a note"]), [pairs])
    assert found.examples == [fresh]
    assert [one.id for one in found.refused] == [asked.id, same_page.id]
    assert found.refused[0].reason == "the evaluator was trained on it or on its page"
    assert found.notes == ["a note"]
    assert kept_apart(found, []) == found
