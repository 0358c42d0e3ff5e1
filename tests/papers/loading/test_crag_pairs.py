from pathlib import Path

import pytest

from crag.papers.loading.detect import load_examples


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "test_popqa.txt"
    lines = [
        "Who was Ada? [SEP] Ada Lovelace wrote notes. [SEP] So it is said.\t1",
        "Who was Ada? [SEP] Ada is a language.\t0",
        "Who was Bob? [SEP] Bob built boats.\t1",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_lines_of_one_question_are_one_example(pairs: Path) -> None:
    loaded = load_examples(pairs, "popqa")
    first, second = loaded.examples
    assert (first.id, first.question, second.id) == ("line-1", "Who was Ada?", "line-3")
    assert [one.metadata["relevant"] for one in first.documents] == [True, False]
    assert first.documents[0].page_content == "Ada Lovelace wrote notes. [SEP] So it is said."
    assert first.answers == ()
    assert any("no answers in this file" in note for note in loaded.notes)


def test_a_line_that_breaks_off_is_refused(pairs: Path) -> None:
    with pairs.open("a", encoding="utf-8") as file:
        file.write("\nWho was Bob? [SEP] Bob bui")
    loaded = load_examples(pairs, "popqa")
    assert len(loaded.examples) == 2
    assert [one.place for one in loaded.refused] == ["test_popqa.txt, line 4"]
    assert "label 0 or 1" in loaded.refused[0].reason


def test_lines_without_labels_have_titles_in_other_tasks(tmp_path: Path) -> None:
    path = tmp_path / "test_bio.txt"
    path.write_text("Who is Ada? [SEP] Ada // Ada wrote.\nno separator\n", encoding="utf-8")
    loaded = load_examples(path, "biography")
    document = loaded.examples[0].documents[0]
    assert (document.metadata["title"], document.page_content) == ("Ada", "Ada wrote.")
    assert "relevant" not in document.metadata
    assert [one.place for one in loaded.refused] == ["test_bio.txt, line 2"]
