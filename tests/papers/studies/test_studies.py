"""Studies beside the tables: variants to train, sheets for people, operations, tutorials' calls."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crag.errors import DataError
from crag.generation import load_chat_model
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import read_experiment
from crag.papers.loading.records import write_records
from crag.papers.self_rag.generator_data import Pair, ReflectiveRecord
from crag.papers.studies import annotation_sheet as SHEET  # noqa: N812
from crag.papers.studies.tutorials import CASES, measured, services
from crag.parts import Parts, Passage
from crag.testing import FakeEvaluator, FakeRetriever
from crag.web import SearxngSearcher
from crag.web.reader import HttpPageReader
from tests.commands import crag, variables
from tests.conftest import DOCUMENTS
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


RAW = "[Retrieval][Relevant]It is red.[Partially supported][Utility:5]"


def row(number: int, raw: str = RAW, cited: int = 1) -> Any:
    sources = [
        {"number": place, "source": {"title": "=Barn"}, "text": f"Text {place}."}
        for place in range(cited)
    ]
    answer = f"Answer {number}."
    return {"id": str(number), "answer": answer, "citations": sources, "reflection": {"raw": raw}}


EXAMPLES = {str(number): Example(str(number), "popqa", f"Q{number}?", ()) for number in range(9)}


def filled(path: Path, target: Path, words: list[tuple[str, str, str]]) -> Path:
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        for line, said in zip(lines, words, strict=True):
            writer.writerow({**line, **dict(zip(SHEET.JUDGED, said, strict=True))})
    return target


def test_a_sheet_shows_answers_and_passages_and_not_what_the_model_said(tmp_path: Path) -> None:
    rows = [row(number) for number in range(5)] + [row(6, cited=0), row(99)]
    lines = SHEET.draw(rows, EXAMPLES, 3, seed=1)
    assert lines == SHEET.draw(rows, EXAMPLES, 3, seed=1)
    assert len({line["question"] for line in lines}) == 3
    assert [(line["passage"], line["support"]) for line in lines] == [("relevant", "partially")] * 3
    path = tmp_path / "sheet.csv"
    SHEET.write(lines, path)
    told = path.read_text("utf-8")
    assert told.splitlines()[0] == ",".join([*SHEET.SHOWN, *SHEET.JUDGED])
    assert "partially" not in told
    assert ", =Barn," in told  # No spreadsheet takes it for a formula.


def test_labels_that_are_not_one_for_each_passage_are_left_out() -> None:
    (first, second) = SHEET.draw([row(1, cited=2)], EXAMPLES, 1, seed=0)
    assert (first["passage"], second["support"]) == ("", "")
    both = SHEET.draw([row(1, RAW + "[Irrelevant]No.", cited=2)], EXAMPLES, 1, seed=0)
    assert [line["passage"] for line in both] == ["relevant", "irrelevant"]


def test_what_judges_say_is_counted_against_the_model_and_each_other(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    SHEET.write(SHEET.draw([row(n) for n in range(4)], EXAMPLES, 4, seed=0), path)
    right = ("yes", "relevant", "partially")
    filled(path, path, [right, right, ("no", "irrelevant", "no"), ("", "", "")])
    other = filled(path, tmp_path / "b.csv", [right, ("no", "Relevant", "fully"), right, right])
    assert SHEET.agreement([path]).splitlines()[2:] == [
        "| plausible and supported | 2 of 3 | - | - |",
        "| passage | - | 2 of 3 | - |",
        "| support | - | 2 of 3 | - |",
    ]
    assert SHEET.agreement([path, other]).splitlines()[2:] == [
        "| plausible and supported | 5 of 7 | - | 1 of 3 |",
        "| passage | - | 6 of 7 | 2 of 3 |",
        "| support | - | 5 of 7 | 1 of 3 |",
    ]


def test_another_word_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    SHEET.write(SHEET.draw([row(1)], EXAMPLES, 1, seed=0), path)
    filled(path, path, [("maybe", "", "")])
    with pytest.raises(DataError, match=r"sheet.csv, line 2: .*'maybe'; write one of yes, no"):
        SHEET.agreement([path])


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
def test_twice_the_pair_costs_more_than_twice() -> None:
    from transformers import T5Config

    from crag.papers.studies import flops

    small = T5Config(
        d_model=16, d_ff=32, d_kv=4, num_layers=1, num_heads=4, vocab_size=50, num_labels=1,
        decoder_start_token_id=0,
    )  # fmt: skip
    one, two = flops.evaluator_flops(16, small), flops.evaluator_flops(32, small)
    assert 2 * one < two < 4 * one


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
        rows = await measured(parts, [2], 2, 1)
        await model.root_async_client.close()
    calls = [(row[1], row[2], row[3]) for row in rows]
    expected = [4, 3, 1, 2, 2]  # No passage of these has a number, so that none passes the grader.
    assert calls[:5] == [("1", c.name, str(n)) for c, n in zip(CASES, expected, strict=True)]
    assert [number for *_, number in calls[5:]] == list(map(str, expected))
