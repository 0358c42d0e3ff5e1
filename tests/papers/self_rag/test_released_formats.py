"""The released data and checkpoints are read as they are, from tiny files of their shape."""

import json
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DataError
from crag.papers.files import read_records
from crag.papers.self_rag.critique_cases import LABELS, LabelledCase
from crag.papers.self_rag.generator_data import ReflectiveRecord
from crag.papers.self_rag.language_model import IGNORED, LanguageRecipe, load_base
from crag.papers.self_rag.reflective_text import reflective_text
from crag.papers.self_rag.tiny_base import tiny_language_model
from tests.trained import written

LABELS_TABLE = Path(__file__).parents[2] / "fixtures" / "self_rag_labels.jsonl"
"""Records of up to three passages, 30 of 40 cut at their length, and for each token whether the
released program learns it, as that program says."""
PASSAGE = "[Retrieval]<paragraph>Kettle\nIt was built in 1700.</paragraph>"
GENERATOR_ROWS: list[dict[str, Any]] = [
    {
        "instruction": "When was the kettle of Peru built?", "input": "", "id": "nq_7",
        "output": f"{PASSAGE}[Relevant]It was built in 1700.[Fully supported][Utility:5]",
        "dataset_name": "nq",
    },
    {
        "instruction": "Say it in words.", "input": "17", "id": 12, "topic": "",
        "output": f"Sure! {PASSAGE}[Irrelevant]It was.[Continue to Use Evidence]By the river."
                  f"{PASSAGE}[Relevant]It was.[Partially supported]See it.[Utility:4]",
        "dataset_name": "alpaca",
    },
    {
        "instruction": "Add 1 and 2.", "input": "", "id": "x", "dataset_name": "gpt4_alpaca",
        "output": "[No Retrieval]It is 3.\nSee it [support on request].[Utility:5]",
    },
]  # fmt: skip
CRITIC_ROWS: list[dict[str, str]] = [
    {
        "instruction": "Judge: retrieve.", "task": "retrieval", "output": "[Retrieval]",
        "input": "Task instruction: When was the kettle of Peru built?",
    },
    {
        "instruction": "Judge: retrieve_next.", "task": "multi_retrieval",
        "input": "Task instruction: When?\n\nWhere?\nPreceding sentences: None\nEvidence: Kettle\n"
                 "It was built.\nOutput: It was.",
        "output": "[Continue to Use Evidence]",
    },
    {
        "instruction": "Decide, in another wording.", "task": "retrieval",
        "input": "Task instruction: When?\nPreceding sentences: It is old.\nEvidence: Kettle\nIt."
                 "\nOutput: Output: it was.",
        "output": "[No Retrieval]",
    },
    {
        "instruction": "Judge: relevance.", "task": "relevance", "output": "[Relevant]",
        "input": "Task instruction: When?\nEvidence: Kettle\nIt was built [Relevant].",
    },
    {
        "instruction": "Judge: support.", "task": "groudness",
        "input": "Task instruction: When?\nOutput: It was.\nEvidence: Kettle\nIt was built.",
        "output": "[No support / Contradictory]",
    },
    {
        "instruction": "Judge: support.", "task": "groudness", "output": "[Fully supported]",
        "input": "Task instruction: When?\nPreceding sentences: It is old.\nOutput: It was.\n"
                 "Evidence: Kettle\nIt was built.",
    },
    {
        "instruction": "Judge: utility.", "task": "utility", "output": "[Utility:3]",
        "input": "Task instruction: When?\nOutput: It was built.\nOutput: by the river.",
    },
]  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written_out = [label for labels in LABELS.values() for label in labels]
    texts = [*written_out, *(row["input"] for row in CRITIC_ROWS)]
    return tiny_language_model(tmp_path_factory.mktemp("base"), texts)


def recipe(base: Path) -> LanguageRecipe:
    return LanguageRecipe(base=str(base), max_length=300)


def test_labels_are_those_of_the_released_program(base: Path) -> None:
    tokenizer = load_base(recipe(base)).tokenizer
    rows = [json.loads(line) for line in LABELS_TABLE.read_text().splitlines()]
    equal = 0
    for row in rows:
        record = ReflectiveRecord.model_validate(row)
        most = row["max_length"]
        text = reflective_text(tokenizer, record.asked, record.output, most, as_released=True)
        assert text is not None
        learned = "".join(str(int(label != IGNORED)) for label in text.labels)
        assert learned == row["learned"], row
        assert (text.labels == text.ids)[text.labels != IGNORED].all()
        equal += 1
    assert equal == len(rows) == 40
    assert sum(len(row["learned"]) == row["max_length"] for row in rows) == 30


@pytest.mark.parametrize("is_array", [True, False])
def test_generator_records_are_read_as_they_were_released(tmp_path: Path, is_array: bool) -> None:
    path = tmp_path / "train.json"
    if is_array:
        path.write_text(json.dumps(GENERATOR_ROWS))
    else:
        written(path, GENERATOR_ROWS)
    records = read_records(path, ReflectiveRecord)
    assert [one.fault for one in records] == ["", "", ""]
    assert [one.output for one in records] == [row["output"] for row in GENERATOR_ROWS]
    assert records[1].asked == "Say it in words.\n\n### Input:\n17"
    assert records[1].id == "12"


def test_critic_records_are_read_as_they_were_released(tmp_path: Path) -> None:
    path = tmp_path / "critic_train.json"
    path.write_text(json.dumps(CRITIC_ROWS))
    cases = read_records(path, LabelledCase)
    assert [case.kind for case in cases] == [
        "retrieve", "retrieve_next", "retrieve_next", "relevance", "support", "support", "utility",
    ]  # fmt: skip
    for case, row in zip(cases, CRITIC_ROWS, strict=True):
        fields = (case.instruction, case.preceding, case.evidence, case.output)
        assert all(field in row["input"] for field in fields)
        assert sum(map(len, fields)) + len("Task instruction: ") <= len(row["input"])
        assert case.label == row["output"]
    path.write_text(json.dumps([CRITIC_ROWS[0] | {"task": "other"}]))
    with pytest.raises(DataError, match="'other' is none of retrieval, utility"):
        read_records(path, LabelledCase)
    path.write_text(json.dumps([CRITIC_ROWS[3] | {"input": "When?"}]))
    with pytest.raises(DataError, match="not the fields of the task 'relevance'"):
        read_records(path, LabelledCase)
