"""Rows of a reader: what is read, what each token is labelled, and their order."""

import json
from pathlib import Path

import pytest

from crag.errors import DataError
from crag.papers.files import read_records
from crag.papers.reader.rows import UNKNOWN, ReadingRow, padded, reading_rows, tokenised
from crag.papers.self_rag.truths import read_truths
from tests.reflective import articles
from tests.trained import packaged_tokenizer

TEXT = "Ann was born in Ulm. She moved to Bonn in 1990."
ROW = ReadingRow(
    question="When did Ann move?",
    title="Ann",
    text=TEXT,
    entity=1,
    answer=1,
    evidence=[(21, 47)],
    span=(42, 46),
)


def written(folder: Path, *rows: object) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def example(row: ReadingRow, max_length: int = 64) -> tuple[dict[str, list[int]], list[str]]:
    tokenizer = packaged_tokenizer()
    found = tokenised(row, tokenizer, max_length)
    return found, tokenizer.convert_ids_to_tokens(found["input_ids"])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"span": [40, 99]}, "40 to 99 is no range of a text of 47 characters"),
        ({"answers": 1}, "answers: Extra inputs are not permitted"),
    ],
)
def test_a_row_that_is_none_is_refused(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    good = ROW.model_dump(mode="json")
    with pytest.raises(DataError, match=problem) as caught:
        read_records(written(tmp_path, good, good | change), ReadingRow)
    assert "2" in str(caught.value)


def test_tokens_are_labelled_where_the_row_says() -> None:
    found, tokens = example(ROW)
    marked = [t for t, label in zip(tokens, found["evidence"], strict=True) if label == 1]
    assert marked == ["she", "moved", "to", "bonn", "in", "1990", "."]
    assert tokens[found["first"]] == tokens[found["last"]] == "1990"  # type: ignore[call-overload]
    outside = [t for t, label in zip(tokens, found["evidence"], strict=True) if label == UNKNOWN]
    assert " ".join(outside) == "[CLS] when did ann move ? [SEP] ann / / [SEP]"


def test_what_is_not_known_is_not_learned() -> None:
    found, _ = example(ReadingRow(question="Who?", text=TEXT, span_known=False))
    assert found["entity"] == found["answer"] == found["first"] == found["last"] == UNKNOWN
    assert set(found["evidence"]) == {UNKNOWN}


def test_a_text_without_answer_has_its_span_at_the_start() -> None:
    found, _ = example(ReadingRow(question="Who?", text=TEXT, answer=0, evidence=[]))
    assert (found["first"], found["last"], found["answer"]) == (0, 0, 0)
    assert set(found["evidence"]) == {UNKNOWN, 0}


def test_an_answer_that_was_cut_off_is_not_known() -> None:
    found, _ = example(ROW, max_length=16)
    assert found["answer"] == found["first"] == UNKNOWN
    assert found["entity"] == 1


def test_a_batch_is_as_long_as_its_longest_row() -> None:
    long, short = example(ROW)[0], example(ROW, max_length=16)[0]
    batch = padded([long, short])
    sizes = [len(long["input_ids"]), len(short["input_ids"])]
    assert batch["attention_mask"].sum(1).tolist() == sizes
    assert (batch["evidence"][1, sizes[1] :] == UNKNOWN).all()
    assert batch["entity"].tolist() == [1, 1]


def test_rows_of_question_sets_are_as_their_table_says(tmp_path: Path) -> None:
    truths = read_truths(written(tmp_path, *articles(24)))
    rows = reading_rows(truths, 100, 0)
    assert rows == reading_rows(truths, 100, 0)
    assert {row.source: (row.entity, row.answer) for row in rows} == {
        "answered": (1, 1), "removed": (1, 0), "neighbour": (None, 0), "elsewhere": (0, 0),
    }  # fmt: skip
    assert {bool(row.title) for row in rows} == {True, False}
    answers = {truth.question: truth.gold[0].answer for truth in truths if truth.gold}
    for row in rows:
        if row.source == "answered":
            assert row.span is not None
            assert row.text[slice(*row.span)] == answers[row.question]
            ((start, end),) = row.evidence or ()
            assert start <= row.span[0] < row.span[1] <= end
        else:
            assert (row.span, row.evidence) == (None, [])
        if row.source == "removed":
            assert answers[row.question] not in row.text
