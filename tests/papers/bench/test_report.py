"""Reports, to the letter: numbers with intervals, the paper's beside them, and all that failed."""

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from crag.papers.bench.examples import Example, Loaded, Refused
from crag.papers.bench.experiments import ACCURACY, Experiment
from crag.papers.bench.report import render, results
from crag.papers.bench.runner import Row, RunResult
from crag.papers.bench.summary import Line, summarise
from crag.papers.cli import app
from crag.papers.views import draw_curves
from tests.papers.bench.runs import chatting, examples, experiment, variant
from tests.trained import written

GOLDEN = """\
# Colours

About colours.

|  |  |
| --- | --- |
| data | questions.jsonl |
| answers | m |
| questions | 4 |
| rows finished | 8 of 12 |

![Colours](colours.png)

## Results

Ours with 95 % bootstrap intervals over questions. Paper: CRAG v3, Table 2, match. Unless model \
and data are those of the paper, only the directions of differences can be compared.

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
        "variant": variant_name, "condition": {}, "id": example.id,
        "seed": 0,
        "outcome": "answered", "error": "", "answer": answer, "action": "", "scores": [],
        "knowledge": "", "knowledge_words": 10,
        "retrieved_holds_answer": None, "knowledge_holds_answer": None, "events": [], "usage": {},
        "seconds": 0.0, "retrieved": None, "raw": "",
    }  # fmt: skip
    return Row(**values | changed)  # type: ignore[typeddict-item]


def compared(folder: Path, **fields: Any) -> tuple[Experiment, list[Example], dict[str, Row]]:
    given = examples(folder)
    barn, gate, boat, kite = given
    made = experiment(
        variant("rag").model_copy(update={"paper": {"LLaMA2": 50.5}}),
        variant("crag").model_copy(update={"paper": {"LLaMA2": 54.9}}),
        **{"about": "About colours.\n", "paper": "CRAG v3, Table 2",
           "metrics": ["match", "knowledge_words"]} | fields,
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
    about = {"data": "questions.jsonl", "answers": "m", "web": ""}
    loaded = Loaded(examples(tmp_path), refused, ["1 question twice"])
    not_run = {"self-rag": "it needs a chat model"}
    ended = RunResult(units=12, resumed=3, answered=5, failed=1, not_run=not_run)
    assert render(made, about, loaded, lines, ended, "colours.png") == GOLDEN


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
    assert len(line.rows) == 8
    assert "rag, retrieval accuracy 50%" in results([line])


def test_curves_of_what_is_varied(tmp_path: Path) -> None:
    made, given, rows = compared(tmp_path, retrieval_accuracies=[0.5])
    path = tmp_path / "curve.png"
    assert not draw_curves(made, summarise(made, given, rows), path, 1.0)
    for example in given:
        one = row("crag", example, "red", condition={ACCURACY: 0.5})
        rows[one["key"]] = one
    assert draw_curves(made, summarise(made, given, rows), path, 1.0)
    assert path.read_bytes().startswith(b"\x89PNG")


EXPERIMENT = """
[biography]
name = "Biographies"
task = "biography"
baseline = "rag"

[biography.settings]
task = "biography"
upper = "none"
lower = "none"

[[biography.variant]]
name = "rag"
method = "rag"
"""
PAGES = [{"title": "Ada", "text": "Ada is indeed red."}, {"title": "Bob", "text": "Bob is blue."}]


def test_a_judge_scores_the_facts_of_those_with_a_page(tmp_path: Path) -> None:
    (tmp_path / "biography.toml").write_text(EXPERIMENT)
    rows = [
        {"input": f"Tell me a bio of {name}.", "topic": name, "cat": [], "output": "",
         "ctxs": [{"title": name, "text": f"{name} wrote."}]}
        for name in ("Ada", "Bob", "Cy")
    ]  # fmt: skip
    command = [
        "bench", tmp_path / "biography.toml", "--data", written(tmp_path / "bio.jsonl", rows),
        "--output", tmp_path / "out", "--fact-judge", "judge",
        "--fact-pages", written(tmp_path / "pages.jsonl", PAGES),
    ]  # fmt: skip
    with chatting() as server:
        variables = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "CRAG_MODEL": "m"}
        variables |= {"CRAG_EVALUATOR": "chat-direct", "COLUMNS": "300"}
        done = CliRunner().invoke(app, [*map(str, command)], env=variables, catch_exceptions=False)
    head, _, line = done.stdout.splitlines()[:3]
    cells = dict(zip(head.split(" | "), line.split(" | "), strict=True))
    assert cells["init score"] == "50.0 % (0.0 to 100.0), 2 questions"
