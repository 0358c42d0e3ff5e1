"""The plan of docs/guide/scale.md is what its formulas say."""

import runpy
from pathlib import Path
from typing import Any

import pytest

PLAN = runpy.run_path(str(Path(__file__).parents[3] / "papers" / "measurements" / "scale_plan.py"))
MEASURED = {
    "chunks_a_core_second": 50, "chunk_bytes": 10_000, "vector_bytes": 1500,
    "evaluator_seconds": 0.3, "server_seconds": 0.06, "postgres_seconds": 0.03,
    "not_correct": 0.5, "knowledge_words": 100,
}  # fmt: skip
ASSUMED = {
    "chunks_a_document": 4, "index_hours": 2, "busy": 0.5, "graph_bytes": 500, "tokens_a_word": 2,
    "prompt_tokens": 300, "answer_tokens": 100, "machine_cores": 8, "core_hour": 0.1,
    "memory_month": 5, "disk_month": 0.5, "million_read": 1, "million_written": 2,
    "thousand_searches": 10,
}  # fmt: skip


def planned(documents: float, questions: float) -> dict[str, tuple[float, float]]:
    known, guess = PLAN["Measured"](**MEASURED), PLAN["Assumed"](**ASSUMED)
    return {row.part: (row.amount, row.cost)
            for row in PLAN["plan"](documents, questions, known, guess)}  # fmt: skip


def test_each_part_is_the_product_of_what_is_measured_assumed_and_wanted() -> None:
    month = 30 * 24  # Hours.
    found = planned(documents=900_000, questions=10)
    expected: dict[str, Any] = {
        "chunks": (3.6e6, 0),
        "indexing, once": (20, 2),  # 3.6 million chunks at 50 a second.
        "workers to index in time": (10, 0),
        "index on disk": (36, 18),
        "vectors in memory": (7.2, 36),
        "evaluator": (6, 6 * 0.1 * month),
        "server processes": (1.2, 1.2 * 0.1 * month),
        "PostgreSQL, threads and runs": (0.6, 0.6 * 0.1 * month),
        # 15 calls a second of 500 tokens read and 100 written.
        "chat model": (15 * 600, 15 * (500 * 1 + 100 * 2) / 1e6 * 3600 * month),
        "web searches": (5, 5 * 0.01 * 3600 * month),
    }
    assert found.keys() == expected.keys()
    for part, (amount, cost) in expected.items():
        assert found[part] == (pytest.approx(amount), pytest.approx(cost)), part


def test_machines_hold_what_answers_questions_and_are_at_least_one() -> None:
    guess = PLAN["Assumed"](**ASSUMED)
    rows = PLAN["plan"](900_000, 100, PLAN["Measured"](**MEASURED), guess)
    assert PLAN["machines"](rows, guess) == 10  # 78 cores on machines of 8.
    assert PLAN["machines"](PLAN["plan"](10, 0.001), guess) == 1
