import json
from pathlib import Path

from crag.papers.bench.examples import Example, Loaded
from crag.papers.loading.contamination import kept_apart, seen_in_training


def example(question: str, *titles: str) -> Example:
    return Example(question, "popqa", question, (("x",),), gold_titles=titles)


def test_questions_and_subjects_of_training_are_found() -> None:
    asked = example("What is Ada's job?", "Ada")
    known = example("Where was Bob born?", "Bob (singer)")
    fresh = example("Who is Cy?", "Cy")
    found = seen_in_training(
        [asked, known, fresh], ["what is  ADA's job"], titles=["bob singer", "Cyrus"]
    )
    assert found == [asked, known]


def test_questions_of_training_files_are_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"question": "What is Ada's job?", "title": "Ada", "text": "Ada counted.", "label": 1},
        {"question": "What is Ada's job?", "title": "Cy", "text": "Cy sang.", "label": 0},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = example("what is Ada's job")
    same_page, fresh = example("Where was Ada born?", "Ada"), example("Who is Cy?", "Cy")
    found = kept_apart(Loaded([asked, same_page, fresh], [], ["a note"]), [path])
    assert found.examples == [fresh]
    assert [one.id for one in found.refused] == [asked.id, same_page.id]
    assert found.refused[0].reason == "the evaluator was trained on it or on its page"
    assert found.notes == ["a note"]
    assert kept_apart(found, []) == found
