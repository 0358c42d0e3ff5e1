"""A reader: the rows that it learns from, that it learns, goes on, and is saved whole."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from crag.errors import CragError
from crag.evaluators.reader import ReaderEvaluator
from crag.models.lexical import FEATURES
from crag.models.model_card import ModelCard
from crag.models.reading_model import SIGNALS, ReaderModel
from crag.papers.files import write_card
from crag.papers.reader.reader import (
    RIGHT_THING,
    Base,
    ReaderRecipe,
    fit_grade,
    grade_of,
    load_base,
    reading_model,
    save_reader,
    train_reader,
    unseen,
)
from crag.papers.reader.rows import UNKNOWN, ReadingRow, padded, reading_rows, tokenised
from crag.papers.self_rag.truths import read_truths
from crag.parts import Passage
from crag.reading import evidence_in
from tests.trained import TOPICS, articles, packaged_tokenizer, written

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


def example(row: ReadingRow, max_length: int = 64) -> tuple[dict[str, list[int]], list[str]]:
    tokenizer = packaged_tokenizer()
    found = tokenised(row, tokenizer, max_length)
    return found, tokenizer.convert_ids_to_tokens(found["input_ids"])


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
    truths = read_truths(written(tmp_path / "rows.jsonl", articles(24)))
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


RECIPE = ReaderRecipe(
    start="encoder",
    frozen_layers=4,
    batch_size=8,
    learning_rate=1e-3,
    warmup_steps=2,
    max_length=64,
    save_steps=12,
)
CARD = ModelCard(kind="reader", base="encoder", max_length=256)


def row(topic: str, *, answered: bool) -> ReadingRow:
    first = f"The {topic} is forty years old." if answered else f"The {topic} is made of wood."
    text = f"Rain fell on the house at night. {first} Nobody was there."
    start = text.index(first)
    return ReadingRow(
        question=f"How old is the {topic}?",
        title=topic.title(),
        text=text,
        entity=1,
        answer=int(answered),
        evidence=[(start, start + len(first))] if answered else [],
        span=(text.index("forty"), text.index("forty") + 11) if answered else None,
    )


ROWS = [row(topic, answered=answered) for topic in TOPICS for answered in (True, False)]


class Run(NamedTuple):
    trained: Base
    saved: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("reader")
    trained = train_reader(RECIPE.model_copy(update={"steps": 24}), ROWS, folder)
    save_reader(trained, ROWS, folder)
    write_card(folder, CARD)
    return Run(trained, folder)


@pytest.mark.nightly
def test_it_learns_to_grade_to_mark_and_to_find(run: Run) -> None:
    reader = ReaderEvaluator.stored(run.saved)
    right, wrong = row("anchor", answered=True), row("anchor", answered=False)
    found, other = reader.read(
        right.question, [Passage(one.title, one.text) for one in (right, wrong)]
    )
    assert found["score"] > other["score"]
    assert right.evidence
    (start, end), size = right.evidence[0], len(right.text)
    assert evidence_in(found, start, end) > 2 * evidence_in(found, end, size)
    assert found["span"] is not None
    assert right.text[found["span"]["start"] : found["span"]["end"]] == "forty years"


@pytest.mark.nightly
def test_what_is_saved_reads_as_what_was_trained(run: Run) -> None:
    """The 8-bit weights, run by ONNX Runtime, against torch."""
    import torch

    model = reading_model(run.trained, RECIPE).train(mode=False)
    tokenizer = run.trained.tokenizer
    question, text = ROWS[0].question, ROWS[0].text
    with torch.inference_mode():
        wanted = model(**tokenizer(question, f"Kettle // {text}", return_tensors="pt"))
    ((view,),) = ReaderModel(run.saved, 256).views([(question, Passage("Kettle", text))])
    assert view.signals[:2] == pytest.approx(wanted["outputs"][0].numpy(), abs=0.3)
    marks = wanted["marks"][0, view.window.text, 0].numpy()
    assert np.abs(view.evidence - marks).mean() < 0.2


@pytest.mark.nightly
def test_the_result_may_be_a_mean_of_start_and_run(run: Run, tmp_path: Path) -> None:
    alone = RECIPE.model_copy(update={"start": str(run.saved), "steps": 2})
    learned = train_reader(alone, ROWS, tmp_path / "alone").weights
    half = alone.model_copy(update={"start_share": 0.5})
    mean = train_reader(half, ROWS, tmp_path / "half").weights
    start = load_base(str(run.saved)).weights
    for name in ("marks.weight", "encoder.layer.5.output.dense.weight"):
        assert not np.allclose(start[name], learned[name])
        np.testing.assert_allclose(mean[name], (start[name] + learned[name]) / 2, atol=1e-6)
    encoder = RECIPE.model_copy(update={"start_share": 0.5})
    with pytest.raises(CragError, match="needs a reader"):
        train_reader(encoder, ROWS, tmp_path / "none")


@pytest.mark.nightly
def test_a_grade_is_fitted_to_what_passages_are_worth(run: Run) -> None:
    grade = fit_grade(ReaderModel(run.saved, 256), ROWS)
    assert len(grade) == len(SIGNALS) + len(FEATURES) + 1
    assert grade[SIGNALS.index("answer")] > 0


@pytest.mark.parametrize(
    ("entity", "answer", "worth"),
    [
        (1, 1, 1.0),
        (None, 1, 1.0),
        (1, 0, RIGHT_THING),
        (None, 0, 0.0),
        (0, None, 0.0),
        (1, None, 0.8),
        (0, 0, 0.0),
        (None, None, None),
    ],
)
def test_worth(entity: int | None, answer: int | None, worth: float | None) -> None:
    assert grade_of(ReadingRow(question="Q", text="T", entity=entity, answer=answer)) == worth


def test_the_grade_is_fitted_to_rows_that_the_run_has_not_seen() -> None:
    kept = unseen(ROWS, RECIPE.model_copy(update={"steps": 2}), 8)
    assert len(kept) == 8
    with pytest.raises(CragError, match=r"leaves 16 of 32 rows unseen.*Set steps=1 or less"):
        unseen(ROWS, RECIPE.model_copy(update={"steps": 2}), 24)
