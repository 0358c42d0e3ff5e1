"""The variants of the paper's training studies, trained on a tiny base."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from crag.papers.bench.experiments import read_experiment
from crag.papers.loading.records import write_records
from crag.papers.self_rag.generator_data import Pair, ReflectiveRecord
from crag.parts import Passage
from tests.commands import crag, variables
from tests.reflective import articles, tiny_base, written

ROOT = Path(__file__).parents[3]
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
def studies() -> ModuleType:
    from crag.papers.studies import self_rag_studies

    return self_rag_studies


def test_each_variant_lacks_what_its_name_says(studies: ModuleType) -> None:
    def retrieve(query: str) -> list[Passage]:
        return [Passage("River", "Rain fell.")] if "built" in query else []

    made = {one.name: one.records for one in studies.variants(RECORDS, PAIRS, retrieve, [4, 8])}
    assert list(made) == ["full", "no_retriever", "no_critic", "llama2_ft", "size_4", "size_8"]
    assert made["full"] == RECORDS
    assert {one.output for name in studies.PLAIN for one in made[name]} == {"It was built in 1700."}
    kept = [pair.instruction for pair in PAIRS[:12]]
    assert [one.instruction for one in made["no_retriever"]] == kept
    assert [one.instruction for one in made["no_critic"]] == [
        f"River\nRain fell.\n\n{asked}" for asked in kept if "built" in asked
    ]
    assert len(made["llama2_ft"]) == len(PAIRS)
    assert made["size_8"][:4] == made["size_4"]
    assert made["size_8"] != RECORDS[:8]


def test_each_variant_is_compared_by_rows_that_need_it(studies: ModuleType) -> None:
    tables = ROOT / "papers" / "tables"
    rows = [row for path in tables.glob("*.toml") for row in read_experiment(path).variants]
    assert {row.generator for row in rows} == {"", *studies.PLAIN}
    for name in ("full", *studies.PLAIN, "size_4"):
        bench = studies.commands(Path("studies") / name)[-1].split(" crag bench ")
        experiment = read_experiment(ROOT / bench[1].split()[0])
        needed = {row.generator for row in experiment.variants}
        assert name in needed or ("CRAG_REFLECTION" in bench[0] and name not in studies.PLAIN)


@pytest.mark.nightly
def test_the_command_trains_each_variant_and_nothing_twice(tmp_path: Path) -> None:
    rows = articles(16)
    texts = written(
        tmp_path / "texts.jsonl", [{k: row[k] for k in ("title", "text")} for row in rows]
    )
    assert crag("index", texts, "--index", tmp_path / "index").returncode == 0
    write_records(tmp_path / "records.jsonl", RECORDS)
    write_records(tmp_path / "pairs.jsonl", PAIRS)
    base = tiny_base(tmp_path / "base")
    command = [
        sys.executable, "-m", "crag.papers.studies.self_rag_studies",
        "--records", tmp_path / "records.jsonl", "--pairs", tmp_path / "pairs.jsonl",
        "--index", tmp_path / "index", "--output", tmp_path / "studies",
        "--sizes", "4", "--set", f"base={base}", "--set", "max_length=256", "--set", "steps=2",
    ]  # fmt: skip
    first, second = (
        subprocess.run(command, env=variables({}), capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout
    lines = [json.loads(line) for line in first.stdout.splitlines() if line.startswith("{")]
    assert {line["variant"]: line["records"] for line in lines} == {
        "full": 12, "no_retriever": 12, "no_critic": 12, "llama2_ft": 16, "size_4": 4,
    }  # fmt: skip
    assert all((tmp_path / "studies" / line["variant"] / "card.json").is_file() for line in lines)
