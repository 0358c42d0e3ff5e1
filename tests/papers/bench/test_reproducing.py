"""The commands of docs/guide/reproduce.md run, on tiny files of the same formats.

A chat model on loopback stands in for all models; it is also asked by raw completion, as the guide
says. Each file has few rows, of which one is drawn.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import Result
from typer.testing import CliRunner

from crag.papers.bench.experiments import read_experiment, read_tables
from crag.papers.cli import app
from tests.papers.bench.runs import ChatServer, chatting
from tests.papers.conftest import PASSAGES, QUESTIONS, SUBJECTS
from tests.papers.metrics.test_citing import classifier
from tests.trained import tiny_bert

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "guide" / "reproduce.md").read_text("utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
LINES = [
    shlex.split(line[2:])
    for block in BLOCKS
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("$ ")
]
BENCHES = [words[2:] for words in LINES if words[:2] == ["crag", "bench"]]
MODELS = {"gpt2-large": "bert", "google/t5_xxl_true_nli_mixture": "entailing"}


def features_model(folder: Path) -> str:
    """Write a model that MAUVE takes; the folder's name must hold bert."""
    return _widened(str(tiny_bert(folder)))


def entailing_model(folder: Path) -> str:
    """Write a classifier by which everything entails everything."""
    return _widened(classifier(folder, ["entailment", "neutral"], 0))


def _widened(folder: str) -> str:
    """Give a tiny model room for every token of its tokenizer."""
    import transformers

    config: Any = transformers.AutoConfig.from_pretrained(folder)
    model: Any = getattr(transformers, config.architectures[0]).from_pretrained(folder)
    model.resize_token_embeddings(config.vocab_size + 1)
    model.save_pretrained(folder)
    return folder


class Place(NamedTuple):
    """A folder with the released files, tiny, and a server."""

    folder: Path
    server: ChatServer

    def crag(self, *words: str) -> Result:
        """Run a command with the variables of the guide, and the stand-ins for models."""
        environment = {
            "CRAG_PROMPTS": "published", "CRAG_FRAMING": "raw", "CRAG_MODEL": "m",
            "OPENAI_BASE_URL": self.server.url, "OPENAI_API_KEY": "none",
            "CRAG_EVALUATOR": "chat-direct", "CRAG_REFLECTION": "prompted", "COLUMNS": "300",
        }  # fmt: skip
        with chdir(self.folder):
            return CliRunner().invoke(app, words, env=environment, catch_exceptions=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("released")
    (folder / "papers").symlink_to(ROOT / "papers")
    _write_files(folder)
    for name in ("popqa", "bio", "pubqa", "arc_challenge"):
        _write_published(folder / "CRAG" / "data" / name)
    features_model(folder / "bert")
    entailing_model(folder / "entailing")
    with chatting() as server:
        place = Place(folder, server)
        for words in LINES:
            if words[:2] == ["cp", "-r"]:
                shutil.copytree(ROOT / words[2], folder / words[3])
            elif words[0] == "cp":
                shutil.copy(folder / words[1], folder / words[2])
        yield place


def _questions(**more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": number, "question": QUESTIONS[number], "answers": [work], "s_wiki_title": name,
            "prop": "occupation", "s_pop": 50,
            "ctxs": [{"title": name, "text": PASSAGES[number]}, {"title": "Else", "text": "It."}],
        } | more
        for number, (name, work, _) in enumerate(SUBJECTS)
    ]  # fmt: skip


def _exam(number: int) -> dict[str, Any]:
    name, _, _ = SUBJECTS[number]
    options = {"label": ["A", "B", "C", "D"], "text": ["ruler", "balance", "cup", "clock"]}
    return {
        "id": f"arc-{number}", "question": QUESTIONS[number], "choices": options, "answerKey": "B",
        "ctxs": [{"title": name, "text": PASSAGES[number]}],
    }  # fmt: skip


def _write_files(folder: Path) -> None:
    people = [name for name, _, _ in SUBJECTS]
    asqa = {
        "sample_id": "-42", "question": "Who won the cup?",
        "qa_pairs": [{"question": "In 1998?", "short_answers": ["France"]}],
        "annotations": [{"long_answer": "France won in 1998."}], "answer": "France won in 1998.",
        "docs": [{"id": "1", "title": "World Cup", "text": "France won in 1998.", "score": 0.5}],
    }  # fmt: skip
    trivia = [{k: v for k, v in row.items() if k in {"question", "answers", "ctxs"}}
              for row in _questions()]  # fmt: skip
    files: dict[str, list[dict[str, Any]]] = {
        "popqa_longtail_w_gs.jsonl": _questions(),
        "triviaqa_test_w_gs.jsonl": trivia,
        "health_claims_processed.jsonl": [
            {"claim": text, "answers": ["true"], "ctxs": [{"title": name, "text": text}]}
            for name, text in zip(people, PASSAGES, strict=True)
        ],
        "arc_challenge_processed.jsonl": [_exam(number) for number in range(len(SUBJECTS))],
        "factscore_unlabeled_alpaca_13b_retrieval.jsonl": [
            {"input": f"Question: Tell me a bio of {name}.", "topic": name, "cat": [], "output": "",
             "ctxs": [{"title": name, "text": text}]}
            for name, text in zip(people, PASSAGES, strict=True)
        ],
        "wikipedia.jsonl": [
            {"title": name, "text": text} for name, text in zip(people, PASSAGES, strict=True)
        ],
    }  # fmt: skip
    for name, rows in files.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "asqa_eval_gtr_top100.json").write_text(json.dumps([asqa]), "utf-8")


def _write_published(folder: Path) -> None:
    """Write a folder of CRAG's data in which every line stands where it belongs."""
    questions = {
        "bio": [f"Who is {name}?" for name, _, _ in SUBJECTS],
        "pubqa": list(PASSAGES),
    }.get(folder.name, QUESTIONS)
    web = [f"{name}: {name} is a {work}." for name, work, _ in SUBJECTS]
    joined = [f"Knowledge1: {a} [sep] Knowledge2: {b}" for a, b in zip(PASSAGES, web, strict=True)]
    files = {
        "sources": questions, "ref/correct": [f"#{one}" for one in PASSAGES],
        "ref/incorrect": [f"#{one}" for one in web], "ref/ambiguous": joined,
    }  # fmt: skip
    (folder / "ref").mkdir(parents=True)
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines), "utf-8")


@pytest.mark.parametrize("words", BENCHES, ids=lambda words: Path(words[4]).name)
def test_each_command_makes_its_table(place: Place, words: list[str]) -> None:
    output = place.folder / words[words.index("--output") + 1]
    given = [MODELS.get(word, word) for word in words]
    before = len(place.server.completed)
    done = place.crag("bench", *given, "--limit", "1", "--web", "wikipedia.jsonl")
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in (output / "rows.jsonl").read_text("utf-8").splitlines()]
    assert all(row["outcome"] != "failed" for row in rows)
    with chdir(ROOT):
        variants = read_experiment(words[0]).variants
    other = {one.name for one in variants if one.generator}
    without = set() if "CRAG/" in str(given) else {"crag, published knowledge"}
    assert {row["variant"] for row in rows} == {one.name for one in variants} - other - without
    report = (output / "report.md").read_text("utf-8")
    assert "## What each row reproduces" in report
    assert len(place.server.completed) > before
    if "--fact-judge" in words:
        assert "init score" in report.partition("## Results")[2]


def test_every_experiment_of_the_papers_has_its_command_and_is_told_of() -> None:
    tables = ROOT / "papers" / "tables"
    known = {
        name
        for path in tables.glob("*.toml")
        for name, table in read_tables(path).items()
        if "paper" in table
    }
    assert {words[0].rpartition(":")[2] for words in BENCHES} == known
    assert known <= set(re.findall(r"`([a-z_0-9]+)`", (tables / "README.md").read_text("utf-8")))
