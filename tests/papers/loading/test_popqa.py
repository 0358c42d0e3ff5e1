import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.papers.loading.detect import load_examples

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


def test_as_plain_questions_all_rows_count(table: Path) -> None:
    loaded = load_examples(table, "qa")
    assert [example.id for example in loaded.examples] == ["1", "2", "3", "6"]


def test_json_lines_with_answers_as_text_or_list(write: Callable[..., Path]) -> None:
    row: dict[str, Any] = {"id": 1, "subj": "Ada", "s_pop": 5, "question": "What was Ada?"}
    rows = [
        {**row, "possible_answers": json.dumps(["poet"])},
        {**row, "id": 2, "question": "And Di?", "possible_answers": ["singer"]},
    ]
    loaded = load_examples(write(rows), "popqa")
    assert [one.answers for one in loaded.examples] == [(("poet",),), (("singer",),)]
