"""Reports, to the letter: numbers with intervals, the paper's beside them, and all that failed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag.papers.bench.command import BenchOptions, Outcome, benchmark
from crag.papers.bench.examples import Example, Loaded, Refused
from crag.papers.bench.experiments import ACCURACY, Experiment
from crag.papers.bench.pictures import draw
from crag.papers.bench.report import Setup, render, results
from crag.papers.bench.resources import Judges
from crag.papers.bench.runner import Row, RunResult
from crag.papers.bench.summary import Line, summarise
from tests.papers.bench.chat_server import ChatServer, chatting
from tests.papers.bench.runs import examples, experiment, variant

PNG = b"\x89PNG"
GOLDEN = """\
# Colours

About colours.

|  |  |
| --- | --- |
| data | questions.jsonl |
| questions | 4 |
| refused rows of the data | 1 |
| rows finished | 8 of 12 |
| answers | m |
| date | 2026-11-21 |

![Colours](colours.png)

## Results

Ours with 95 % bootstrap intervals over questions. 0 everywhere: llm calls. Paper: CRAG v3, \
Table 2, match. Unless model and data are those of the paper, only the directions of differences \
can be compared.

| variant | match | knowledge words | paper: LLaMA2 |
| --- | --- | --- | --- |
| rag | 50.0 % (0.0 to 100.0) | 10 (10 to 10) | 50.5 |
| crag | 100.0 % (100.0 to 100.0), 3 questions | 4 (4 to 4), 3 questions | 54.9 |

## Differences

Question by question against `rag` under the same condition, with paired 95 % bootstrap intervals; \
bold where the interval excludes zero.

| variant | match | knowledge words |
| --- | --- | --- |
| crag | +33.3 (0.0 to +100.0), 3 questions | **−6 (−6 to −6), 3 questions** |

## What became of the questions

| variant | rows | answered | likely | not found | failed | correct / ambiguous / incorrect |
| --- | --- | --- | --- | --- | --- | --- |
| rag | 4 | 3 | 0 | 1 | 0 | - |
| crag | 4 | 3 | 0 | 0 | 1 | 4 / 0 / 0 |

## Not run

- `self-rag`: it needs a chat model

## Failed rows

- 1 × generate: the model is out of order

## Refused rows of the data

- questions.jsonl, line 5: no question

## Notes on the data

- 1 question twice
"""


def row(variant_name: str, example: Example, answer: str, **changed: Any) -> Row:
    values: dict[str, Any] = {
        "key": f"{variant_name} {example.id} {changed.get('seed', 0)} {changed.get('condition')}",
        "variant": variant_name, "condition": {}, "id": example.id, "task": "popqa",
        "method": variant_name, "settings": {}, "seed": 0, "model": "m", "evaluator": "e",
        "outcome": "answered", "error": "", "answer": answer, "action": "", "scores": [],
        "knowledge": "", "knowledge_words": 10, "documents_words": 10,
        "retrieved_holds_answer": None, "knowledge_holds_answer": None, "events": [], "usage": {},
        "seconds": 0.0, "reflection": None,
    }  # fmt: skip
    return Row(**values | changed)  # type: ignore[typeddict-item]


def compared(folder: Path, **fields: Any) -> tuple[Experiment, list[Example], dict[str, Row]]:
    given = examples(folder)
    barn, gate, boat, kite = given
    made = experiment(
        variant("rag").model_copy(update={"paper": {"LLaMA2": 50.5}}),
        variant("crag").model_copy(update={"paper": {"LLaMA2": 54.9}}),
        **{"about": "About colours.\n", "paper": "CRAG v3, Table 2",
           "metrics": ["match", "knowledge_words", "llm_calls"]} | fields,
    )  # fmt: skip
    rows = [
        row("rag", barn, "red"), row("rag", gate, "red"), row("rag", boat, "blue"),
        row("rag", kite, "I do not know", outcome="not_found"),
        *(row("crag", one, one.answers[0][0], action="correct", knowledge_words=4)
          for one in (barn, gate, boat)),
        row("crag", kite, "", outcome="failed", action="correct", knowledge_words=4,
            error="generate: the model is out of order"),
    ]  # fmt: skip
    return made, given, {one["key"]: one for one in rows}


def lines_of(folder: Path, **fields: Any) -> tuple[Experiment, list[Line]]:
    made, given, rows = compared(folder, **fields)
    return made, summarise(made, given, rows)


def test_the_whole_report(tmp_path: Path) -> None:
    made, lines = lines_of(tmp_path)
    refused = [Refused("questions.jsonl, line 5", "no question")]
    setup = Setup(
        data="questions.jsonl", loaded=Loaded(examples(tmp_path), refused, ["1 question twice"]),
        parts={"answers": "m", "web": "", "date": "2026-11-21"},
    )  # fmt: skip
    not_run = {"self-rag": "it needs a chat model"}
    ended = RunResult(units=12, resumed=3, answered=5, failed=1, not_run=not_run)
    assert render(made, setup, lines, ended, "colours.png") == GOLDEN


def test_seeds_are_averaged_for_each_question(tmp_path: Path) -> None:
    made, given, _ = compared(tmp_path, retrieval_accuracies=[0.5], seeds=[0, 1])
    told = {
        one["key"]: one
        for seed, answers in ((0, "red"), (1, "blue"))
        for one in (
            row("rag", example, answers, seed=seed, condition={ACCURACY: 0.5}) for example in given
        )
    }
    (line,) = summarise(made, given, told)
    assert line.cells["match"] is not None
    assert (line.cells["match"].value, line.cells["match"].questions) == (0.375, 4)
    assert (line.seeds, line.rows) == (2, 8)
    assert "rag, retrieval accuracy 50%" in results(made, [line])


def test_pictures_of_bars(tmp_path: Path) -> None:
    made, lines = lines_of(tmp_path)
    path = draw(made, lines, tmp_path / "bars.png")
    assert path is not None
    assert path.read_bytes().startswith(PNG)
    assert draw(made, lines, tmp_path / "again.png") is not None
    assert (tmp_path / "again.png").read_bytes() == path.read_bytes()


def test_pictures_of_curves(tmp_path: Path) -> None:
    made, given, rows = compared(tmp_path, retrieval_accuracies=[0.5, 0.25])
    for share in (0.5, 0.25):
        for example in given:
            one = row("crag", example, "red", condition={ACCURACY: share})
            rows[one["key"]] = one
    lines = summarise(made, given, rows)
    assert [line.condition for line in lines] == [{}, {}, {ACCURACY: 0.5}, {ACCURACY: 0.25}]
    path = draw(made, lines, tmp_path / "curve.png", 1.0)
    assert path is not None
    assert path.stat().st_size > 5000
    failed = [replace(one, cells=dict.fromkeys(one.cells)) for one in lines if one.condition]
    without = draw(made, [*lines[:2], *failed], tmp_path / "without.png", 1.0)
    assert without is not None  # What could not be measured is no point of a curve.
    assert without.read_bytes() != path.read_bytes()


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
