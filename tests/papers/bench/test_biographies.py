"""Biographies: facts are judged by another chat model, against the pages that there are."""

import json
from pathlib import Path
from typing import Any

import pytest

from crag.papers.bench.command import BenchOptions, Outcome, benchmark
from crag.papers.bench.judges import Judges
from tests.papers.bench.chat_server import ChatServer, chatting

EXPERIMENT = """
name = "Biographies"
task = "biography"
baseline = "rag"

[settings]
task = "biography"

[[variant]]
name = "rag"
method = "rag"
"""
PAGES = [{"title": "Ada", "text": "Ada is indeed red."}, {"title": "Bob", "text": "Bob is blue."}]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(
    folder: Path, server: ChatServer, judge: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> Outcome:
    variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "CRAG_MODEL": "m"}
    for name, value in (variables | {"CRAG_EVALUATOR": "chat-direct"}).items():
        monkeypatch.setenv(name, value)
    (folder / "biography.toml").write_text(EXPERIMENT)
    rows = [
        {"input": f"Tell me a bio of {name}.", "topic": name, "cat": [], "output": "",
         "ctxs": [{"title": name, "text": f"{name} wrote."}]}
        for name in ("Ada", "Bob", "Cy")
    ]  # fmt: skip
    pages = (written(folder / "pages.jsonl", PAGES),)
    return benchmark(
        BenchOptions(
            experiment=folder / "biography.toml", data=written(folder / "bio.jsonl", rows),
            output=folder / "out", thresholds="evaluator",
            judges=Judges(facts="judge", facts_url=judge.url, pages=pages),
        )
    )  # fmt: skip


def test_a_judge_elsewhere_scores_those_with_a_page_and_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with chatting() as server, chatting() as judge:
        first = run(tmp_path, server, judge, monkeypatch)
        asked = len(server.prompts), len(judge.prompts)
        again = run(tmp_path, server, judge, monkeypatch)
        assert (len(server.prompts), len(judge.prompts)) == asked
        assert not any("List every fact" in prompt for prompt in server.prompts)
    for outcome in (first, again):
        found = outcome.lines[0].cells["init_score"]
        assert found is not None
        assert (found.value, found.questions) == (0.5, 2)
    report = first.report.read_text()
    assert "without a page in --fact-pages, so their facts have no judge: Cy" in report
