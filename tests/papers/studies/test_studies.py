"""Studies beside the tables: variants to train, operations, tutorials' calls."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crag.generation import load_chat_model
from crag.papers.files import write_records
from crag.papers.self_rag.generator_data import Pair, ReflectiveRecord
from crag.papers.studies.tutorials import CASES, measured, services
from crag.parts import Parts, Passage
from crag.testing import FakeEvaluator, FakeRetriever
from crag.web import SearxngSearcher
from crag.web.reader import HttpPageReader
from tests.commands import crag, variables
from tests.conftest import DOCUMENTS
from tests.trained import articles, tiny_base, written

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


@pytest.mark.slow
def test_a_pass_of_the_generator_is_its_matrix_products() -> None:
    from transformers import LlamaConfig

    from crag.papers.studies import flops

    layers, width, inner, words, tokens = 2, 32, 64, 100, 10
    config = LlamaConfig(
        hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=4, vocab_size=words,
    )  # fmt: skip
    weights = layers * (4 * width * width + 3 * width * inner) + width * words
    attention = layers * 2 * tokens * tokens * width
    assert flops.generator_flops(tokens, config) == 2 * tokens * weights + 2 * attention


@pytest.mark.slow
def test_methods_are_told_as_in_the_paper() -> None:
    from crag.papers.studies import flops

    told = [flops.told(method, 10 * 10**12, 10**12) for method in flops.METHODS]
    assert told == ["10.0", "11.0", "10.0 to 50.0", "11.0 to 31.0"]


@pytest.mark.slow
async def test_calls_are_1_2_2_against_one_for_each_document() -> None:
    with services(0.02) as (address, search):
        model: Any = load_chat_model("m", base_url=address, retries=0)
        parts = Parts(
            retriever=FakeRetriever(documents=list(DOCUMENTS)),
            evaluator=FakeEvaluator(0.9),
            model=model,
            searcher=SearxngSearcher(search),
            reader=HttpPageReader(allow_loopback=True),
        )
        rows = await measured(parts, 2, 2, 1)
        await model.root_async_client.close()
    calls = [tuple(row[:3]) for row in rows]
    expected = [4, 3, 1, 2, 2]  # No passage of these has a number, so that none passes the grader.
    assert calls[:5] == [("1", c.name, str(n)) for c, n in zip(CASES, expected, strict=True)]
    assert [number for *_, number in calls[5:]] == list(map(str, expected))
