"""A larger reader that teaches: how it reads what the reader reads."""

from collections.abc import Callable
from pathlib import Path

import pytest

from crag.errors import TrainingError
from crag.papers.reader.teacher import TeacherTokens, teaching_model
from tests.papers.reader.teachers import tiny_bert_teacher, tiny_mpnet_teacher
from tests.trained import packaged_tokenizer, tiny_bert

PAIRS = [("Where is the kettle?", "Hall // In the hall of Odin."), ("Why?", "It rains.")]


@pytest.mark.parametrize("saved", [tiny_bert_teacher, tiny_mpnet_teacher])
def test_a_teacher_reads_the_same_pieces_as_by_its_own_tokenizer(
    saved: Callable[[Path], Path], tmp_path: Path
) -> None:
    import torch
    from transformers import AutoTokenizer

    folder = saved(tmp_path / "teacher")
    own = packaged_tokenizer()
    theirs = AutoTokenizer.from_pretrained(str(folder))
    inputs = [own(*pair)["input_ids"] for pair in PAIRS]
    longest = max(map(len, inputs))
    batch = TeacherTokens(folder, own).batch(inputs, longest)
    wanted = theirs(*zip(*PAIRS, strict=True), padding=True, return_tensors="pt")
    for name, values in wanted.items():
        assert batch[f"teacher_{name}"].tolist() == values.tolist()
    assert batch["teacher_places"].shape == (2, longest)
    for ids, row, places in zip(
        inputs, batch["teacher_input_ids"], batch["teacher_places"], strict=True
    ):
        pieces = own.convert_ids_to_tokens(ids)
        found = theirs.convert_ids_to_tokens(row[places[: len(ids)]].tolist())
        same = [a == b for a, b in zip(pieces, found, strict=True) if not a.startswith("[")]
        assert all(same)
        assert len(same) == len(ids) - 3
    model = teaching_model(folder, 2, 3).eval()
    with torch.inference_mode():
        outputs, marks = model(batch)
        alone = TeacherTokens(folder, own).batch(inputs[1:], len(inputs[1]))
        (outputs_alone,), (marks_alone,) = model(alone)
    assert (outputs.shape, marks.shape) == ((2, 2), (2, longest, 3))
    torch.testing.assert_close(outputs[1], outputs_alone, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(marks[1, : len(inputs[1])], marks_alone, atol=1e-4, rtol=1e-4)


def test_a_teacher_that_cuts_texts_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="cuts texts into other pieces: it lacks"):
        TeacherTokens(tiny_bert(tmp_path / "other"), packaged_tokenizer())


def test_a_folder_without_a_model_is_no_teacher(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="cannot be used"):
        TeacherTokens(tmp_path, packaged_tokenizer())
    with pytest.raises(TrainingError, match="cannot be used"):
        teaching_model(tmp_path, 2, 3)
