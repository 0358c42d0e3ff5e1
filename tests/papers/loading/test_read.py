"""What a run reads: a sample, and nothing that its evaluator was trained on."""

from collections.abc import Callable
from pathlib import Path

from crag.papers.bench.examples import Example, Loaded
from crag.papers.loading.read import kept_apart, load_examples, sample

Write = Callable[..., Path]


def test_a_limit_draws_the_same_examples_in_the_order_of_the_file(write: Write) -> None:
    rows = [{"id": str(n), "question": f"q{n}?", "answers": [str(n)]} for n in range(100)]
    loaded = load_examples(write(rows, "qa.jsonl"), "qa")
    drawn = sample(loaded, 10, 3)
    ids = [int(example.id) for example in drawn.examples]
    assert len(ids) == 10
    assert ids == sorted(ids)
    assert drawn == sample(loaded, 10, 3) != sample(loaded, 10, 4)
    assert "10 of 100 examples drawn with seed 3" in drawn.notes


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
