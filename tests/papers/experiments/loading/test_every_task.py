"""The main table of every task, from a file in each published format to the report.

Each row of the experiments in `papers/tables` runs with a chat model behind HTTP, which
also judges documents and reflects. What the files suffer from is repaired or refused on the way.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crag.papers.experiments.command import BenchOptions, Outcome, benchmark
from crag.papers.experiments.judges import Judges
from tests.papers.experiments.chat_server import ChatServer, chatting
from tests.papers.experiments.tiny_judges import entailing_model, features_model

EXPERIMENTS = Path(__file__).parents[4] / "papers" / "tables"
Write = Callable[..., Path]
PUBLISHED = "crag, published knowledge"
MODELS = {"no retrieval", "rag", "rag, web always", "crag", "binary-llm"}
SELF_RAG = {"self-rag", "self-rag, as released"}
SELF_CRAG = {"self-crag, assembled", "self-crag, routed"}
REFLECTING = SELF_RAG | SELF_CRAG | {"self-crag, as released"}
OURS = SELF_CRAG | {"self-rag"}
BIOGRAPHY = REFLECTING | {"self-rag, as released, with Wikipedia"}


pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    with chatting() as running:
        for name in ("TAVILY_API_KEY", "SEARXNG_URL", "CRAG_SEARCH", "CRAG_REFLECTION"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("CRAG_MODEL", "m")
        monkeypatch.setenv("CRAG_EVALUATOR", "chat-direct")
        yield running


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Outcome]:
    def run(task: str, data: Path, **options: Any) -> Outcome:
        web = tmp_path / "web.jsonl"
        web.write_text(json.dumps({"title": "Colours", "text": "It is indeed red, colour of all."}))
        return benchmark(
            BenchOptions(
                experiment=EXPERIMENTS / f"{task}.toml", data=data, output=tmp_path / "out",
                web=(web,), thresholds="evaluator", **options,
            )
        )  # fmt: skip

    return run


def means(outcome: Outcome, metric: str) -> dict[str, float | None]:
    found = {line.variant.name: line.cells[metric] for line in outcome.lines}
    return {name: None if cell is None else cell.value for name, cell in found.items()}


def same(names: set[str], value: float) -> dict[str, float]:
    return dict.fromkeys(names, pytest.approx(value))


def checked(
    outcome: Outcome,
    examples: int,
    *,
    published: bool = False,
    reflecting: set[str] = REFLECTING,
) -> str:
    """Return the report, after a look at what every run must hold."""
    assert len(outcome.loaded.examples) == examples
    assert outcome.ended.failed == 0
    assert set(outcome.ended.not_run) == (set() if published else {PUBLISHED})
    ran = MODELS | reflecting | ({PUBLISHED} if published else set())
    assert {line.variant.name: line.rows for line in outcome.lines} == dict.fromkeys(ran, examples)
    assert outcome.pictures[0].exists()
    return outcome.report.read_text()


def windows(path: Path, *, cut: int = 0) -> Path:
    """Give a file Windows line ends, and lose its last characters as a broken download does."""
    content = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(content[: len(content) - cut])
    return path


def test_popqa_with_windows_line_ends_a_truncated_end_and_a_duplicate(
    server: ChatServer, run: Callable[..., Outcome], write: Write, popqa_rows: list[dict[str, Any]]
) -> None:
    server.answers = {"Ada Lovelace": "a mathematician [1].", "Ole": "A JURIST [1]."}
    rows = [popqa_rows[0], popqa_rows[4], {**popqa_rows[0], "id": 1}, popqa_rows[1]]
    outcome = run("popqa", windows(write(rows), cut=40))
    report = checked(outcome, 2)
    assert means(outcome, "match") == same(MODELS | REFLECTING, 0.5)
    assert means(outcome, "match_normalised") == same(MODELS | REFLECTING, 1.0)
    assert "| refused rows of the data | 2 |" in report
    assert "it repeats the row with id" in report
    assert "download it again" in report
    assert "removed Windows line ends" in report


def test_popqa_of_the_repository_with_its_knowledge(
    run: Callable[..., Outcome], crag_folder: Write, questions: list[str],
    popqa_rows: list[dict[str, Any]],
) -> None:  # fmt: skip
    for row in popqa_rows[4:]:
        row["ctxs"][0]["text"] = f"Indeed, indeed: {row['ctxs'][0]['text']}"
    folder = crag_folder()
    (folder / "eval.jsonl").write_text("\n".join(map(json.dumps, popqa_rows)), encoding="utf-8")
    outcome = run("popqa", folder)
    checked(outcome, len(questions), published=True)
    rows = [json.loads(line) for line in outcome.rows.read_text().splitlines()]
    told = sorted((row for row in rows if row["variant"] == PUBLISHED), key=lambda row: row["id"])
    assert [row["action"] for row in told] == ["incorrect"] * 4 + ["correct"] * 4
    assert told[0]["knowledge"] == "Ada Lovelace: Ada Lovelace is known as a mathematician."
    assert (
        told[4]["knowledge"] == "Ole Krarup was a jurist who taught law at Copenhagen for decades."
    )
    # The evaluator is a chat model too: two documents and the answer.
    assert {row["usage"]["llm_calls"] for row in told} == {3}
    assert means(outcome, "knowledge_recall")[PUBLISHED] == 1.0


def test_popqas_own_table_has_no_passages(run: Callable[..., Outcome], tmp_path: Path) -> None:
    names = ["id", "subj", "prop", "s_wiki_title", "s_pop", "question", "possible_answers"]
    rows = [["1", "Ada", "job", "Ada", "41", "What was Ada?", '["red"]'],
            ["2", "Bob", "job", "Bob", "42", "What was Bob?", '["blue"]']]  # fmt: skip
    path = tmp_path / "popQA.tsv"
    path.write_text("\n".join("\t".join(row) for row in [names, *rows]))
    outcome = run("popqa", path)
    checked(outcome, 2)
    found = means(outcome, "match")
    assert found["crag"] == 0.5
    assert found["no retrieval"] == 0.5
    assert means(outcome, "retrieved_recall")["crag"] is None
    assert means(outcome, "knowledge_recall")["crag"] == 0.5


def test_pubhealth_reads_verdicts_as_both_papers_do(
    server: ChatServer, run: Callable[..., Outcome], write: Write
) -> None:
    server.answers = {"Milk": "This is true.", "Snow": "REFUTES", "Grass": "False."}
    rows = [
        {"claim": "Milk is white.", "label": "SUPPORTS", "ctxs": []},
        {"claim": "Snow is black.", "answers": ["false"], "ctxs": [{"title": "", "text": "Snow."}]},
        {"claim": "Grass is blue.", "answers": ["REFUTES"], "ctxs": []},
        {"claim": "Hay is old.", "answers": ["mixture"], "ctxs": []},
    ]
    outcome = run("pubhealth", write(rows))
    report = checked(outcome, 3)
    assert means(outcome, "match") == same(MODELS | REFLECTING, 2 / 3)
    assert means(outcome, "match_normalised") == same(MODELS | REFLECTING, 1.0)
    assert "mixture" in report


def test_arc_of_the_repository_with_shifted_knowledge_and_numeric_keys(
    server: ChatServer, run: Callable[..., Outcome], crag_folder: Write, arc_row: dict[str, Any]
) -> None:
    tools = ["ruler", "balance", "beaker", "clock", "magnet", "prism"]
    things = ["length", "mass", "volume", "time", "field", "light"]
    asked = [f"Which tool deals with {thing}?" for thing in things]
    told = [f"{a}: A {a} deals with {b}." for a, b in zip(tools, things, strict=True)]
    rows = [{**arc_row, "id": f"arc-{n}", "question": text} for n, text in enumerate(asked)]
    numbered = {"label": ["1", "2", "3", "4"], "text": arc_row["choices"]["text"]}
    rows[3] |= {"choices": numbered, "answerKey": "4"}
    server.answers = {
        "with mass?": "B",
        "with time?": "D",
        "with length?": "The answer is B, a balance",
    }
    folder = crag_folder(
        sources=asked, choices=["A: ruler; B: balance; C: cup; D: clock"] * 6,
        correct=[f"#{text}" for text in told],
        incorrect=["", *(f"#{text} It is said." for text in told)],
        ambiguous=None,
    )  # fmt: skip
    (folder / "arc.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    outcome = run("arc", folder)
    report = checked(outcome, 6, published=True)
    # The official match looks for "B" and never for a letter of a numeric key.
    everyone = MODELS | REFLECTING | {PUBLISHED}
    assert means(outcome, "match") == same(everyone, 2 / 6)
    assert means(outcome, "match_normalised") == same(everyone, 3 / 6)
    assert "moved by +1 line" in report
    assert "numeric answer key" in report
    judged = [text for text in server.prompts if text.startswith("Does the passage below state")]
    assert judged
    assert not any("cup" in text for text in judged)
    shown = [text for text in server.prompts if text.endswith("D: clock")]
    assert shown


def test_biographies_are_scored_by_a_judge_elsewhere(
    server: ChatServer, run: Callable[..., Outcome], write: Write
) -> None:
    rows = [
        {"input": f"Question: Tell me a bio of {name}.", "topic": name, "cat": [], "output": "",
         "ctxs": [{"title": name, "text": f"{name} wrote."}]}
        for name in ("Ada", "Bob", "Cy")
    ]  # fmt: skip
    known = [
        {"title": "Ada", "text": "Ada is indeed red."},
        {"title": "Bob", "text": "Bob is blue."},
    ]
    with chatting() as judge:
        pages = write(known, "pages.jsonl")
        judges = Judges(facts="judge", facts_url=judge.url, pages=(pages,))
        outcome = run("biography", write(rows), judges=judges)
        report = checked(outcome, 3, reflecting=BIOGRAPHY)
        assert means(outcome, "init_score") == same(MODELS | BIOGRAPHY, 0.5)
        assert means(outcome, "facts") == same(MODELS | BIOGRAPHY, 1.0)
        assert "50.0 % (0.0 to 100.0), 2 questions" in report
        assert "without a page in --fact-pages, so their facts have no judge: Cy" in report
        assert not any("List every fact" in prompt for prompt in server.prompts)
        before = len(judge.prompts), len(server.prompts)
        again = run("biography", write(rows), judges=judges)
        assert means(again, "init_score") == means(outcome, "init_score")
        assert (len(judge.prompts), len(server.prompts)) == before


def test_a_judge_that_is_out_of_order_costs_no_report(
    run: Callable[..., Outcome], write: Write
) -> None:
    row = {"input": "Tell me a bio of Ada.", "topic": "Ada", "output": "", "ctxs": []}
    pages = write([{"title": "Ada", "text": "Ada is red."}], "pages.jsonl")
    with chatting() as judge:
        judge.failing = "List every fact"
        judges = Judges(facts="judge", facts_url=judge.url, pages=(pages,))
        outcome = run("biography", write([row]), judges=judges)
    checked(outcome, 1, reflecting=BIOGRAPHY)
    assert set(means(outcome, "init_score").values()) == {None}


def test_biographies_without_a_judge_say_which_option_brings_one(
    run: Callable[..., Outcome], write: Write
) -> None:
    row = {"input": "Tell me a bio of Ada.", "topic": "Ada", "output": "", "ctxs": []}
    outcome = run("biography", write([row]))
    report = checked(outcome, 1, reflecting=BIOGRAPHY)
    assert "No row has a value: init score (see --fact-judge)" in report
    assert means(outcome, "init_score")["crag"] is None


def test_triviaqa(run: Callable[..., Outcome], write: Write) -> None:
    row = {"question": "Of what colour is Peru?", "answers": ["red", "scarlet"]}
    contexts = [{"title": "Peru", "text": "Peru is indeed red."}]
    rows = [{**row, "top_contexts": contexts}, {"question": "Capital of Peru?", "answers": ["Lima"],
                                               "top_contexts": []}]  # fmt: skip
    outcome = run("triviaqa", write(rows))
    assert set(outcome.ended.not_run) == set()
    assert outcome.ended.failed == 0
    assert means(outcome, "match") == same(MODELS | SELF_RAG | SELF_CRAG, 0.5)


@pytest.mark.parametrize("published_as", ["alce", "self-rag"])
def test_asqa_with_citations_and_mauve(
    server: ChatServer, run: Callable[..., Outcome], write: Write, asqa_item: dict[str, Any],
    tmp_path: Path, published_as: str,
) -> None:  # fmt: skip
    server.answers = {"Who won": "France won in 1998 [1]. Brazil too."}
    if published_as == "self-rag":
        asqa_item["ctxs"] = asqa_item.pop("docs")
    asqa_item["annotations"][0]["long_answer"] = "France won in 1998. Brazil too."
    data = write([asqa_item], "asqa.json" if published_as == "alce" else "asqa.jsonl")
    judges = Judges(
        entailment=entailing_model(tmp_path / "nli"), mauve=features_model(tmp_path / "bert")
    )
    outcome = run("asqa", data, judges=judges)
    assert outcome.ended.failed == 0
    assert means(outcome, "str_em") == same(MODELS | SELF_RAG | SELF_CRAG, 1.0)
    likeness = means(outcome, "rouge_lsum")
    assert {name: likeness[name] for name in MODELS} == same(MODELS, 1.0)
    # What reflection writes cannot cite by itself, so that its [1] is a word.
    assert {name: likeness[name] for name in OURS} == same(OURS, 12 / 13)
    recalls = means(outcome, "citation_recall")
    assert recalls["rag"] == 0.5
    assert recalls["no retrieval"] == 0.0
    assert means(outcome, "citation_precision")["rag"] == 1.0
    assert all(value is not None for value in means(outcome, "mauve").values())
    assert "| citations judged by |" in outcome.report.read_text()


def test_questions_of_ones_own(run: Callable[..., Outcome], write: Write) -> None:
    rows: Sequence[dict[str, Any]] = [
        {"id": name, "question": f"What colour is the {name}?", "answers": [colour],
         "documents": [{"title": name, "text": f"The {name} is indeed {colour}."}]}
        for name, colour in [("barn", "red"), ("kite", "green"), ("old barn", "red")]
    ]  # fmt: skip
    pair = {"question": "What colour is the old barn?", "title": "", "text": "Red.", "label": 1}
    trained = write([pair], "trained.jsonl")
    outcome = run("k", write(rows), trained_on=(trained,))
    assert outcome.ended.failed == 0
    assert len(outcome.loaded.examples) == 2
    assert "the evaluator was trained on it" in outcome.report.read_text()
    assert set(means(outcome, "match").values()) == {0.5}
