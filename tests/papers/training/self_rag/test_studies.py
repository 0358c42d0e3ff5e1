"""The variants of the paper's training studies, trained and compared on a tiny base."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from crag.papers.training.records import write_records
from crag.papers.training.self_rag.generator_data import Pair, ReflectiveRecord
from crag.parts import Passage
from tests.commands import crag, variables
from tests.reflective import articles, tiny_base, written

ROOT = Path(__file__).parents[4]
PAIRS = [
    Pair(instruction=row["questions"][0]["question"], output="It was built in 1700.")
    for row in articles(16)
]
RECORDS = [
    ReflectiveRecord(
        instruction=pair.instruction,
        output="[Retrieval]<paragraph>A\nIt was.</paragraph>[Relevant] It was built in 1700."
        "[Fully supported][Utility:5]",
    )
    for pair in PAIRS[:12]
]


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "papers" / "measurements"))
    import self_rag_studies

    return self_rag_studies


def test_each_variant_lacks_what_its_name_says(studies: ModuleType) -> None:
    def retrieve(query: str) -> list[Passage]:
        return [Passage("River", "Rain fell.")] if "built" in query else []

    made = {one.name: one.records for one in studies.variants(RECORDS, PAIRS, retrieve, [4, 8])}
    assert list(made) == ["full", "no_retriever", "no_critic", "size_4", "size_8"]
    assert made["full"] == RECORDS
    assert {one.output for one in made["no_retriever"]} == {"[No Retrieval] It was built in 1700."}
    assert {one.output for one in made["no_critic"]} == {
        "[Retrieval]<paragraph>River\nRain fell.</paragraph> It was built in 1700."
    }
    assert len(made["no_retriever"]) == len(RECORDS)
    assert len(made["no_critic"]) == 6
    assert made["size_8"][:4] == made["size_4"]
    assert made["size_8"] != RECORDS[:8]


@pytest.mark.thorough
def test_the_command_trains_and_compares_and_trains_nothing_twice(tmp_path: Path) -> None:
    rows = articles(16)
    truths = written(tmp_path / "truths.jsonl", rows)
    texts = written(
        tmp_path / "texts.jsonl", [{k: row[k] for k in ("title", "text")} for row in rows]
    )
    assert crag("index", texts, "--index", tmp_path / "index").returncode == 0
    write_records(tmp_path / "records.jsonl", RECORDS)
    write_records(tmp_path / "pairs.jsonl", PAIRS)
    base = tiny_base(tmp_path / "base")
    command = [
        sys.executable, ROOT / "papers" / "measurements" / "self_rag_studies.py",
        "--records", tmp_path / "records.jsonl", "--pairs", tmp_path / "pairs.jsonl",
        "--index", tmp_path / "index", "--answerable", truths, "--output", tmp_path / "studies",
        "--sizes", "4", "--questions", "6", "--set", f"base={base}", "--set", "max_length=256",
        "--set", "steps=2",
    ]  # fmt: skip
    first, second = (
        subprocess.run(command, env=variables({}), capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout
    lines = [json.loads(line) for line in first.stdout.splitlines() if line.startswith("{")]
    assert [name for line in lines for name in line] == [
        "full",
        "no_retriever",
        "no_critic",
        "size_4",
    ]
    assert lines[3]["size_4"]["records"] == "4"
    assert lines[0]["full"]["answers that hold a gold answer"].endswith(" of 3")
    assert "| records | 12 | 12 | 12 | 4 |" in first.stdout
