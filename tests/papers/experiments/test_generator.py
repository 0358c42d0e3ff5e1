"""The benchmark of generators: its questions, its verdicts, and a run that goes on."""

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crag.papers.experiments.examples import Example
from crag.papers.training.self_rag.language_base import load_language_model, save_language_model
from tests.papers.experiments.chat_server import ChatServer, chatting
from tests.reflective import tiny_base

ROOT = Path(__file__).parents[3]
LAMP = "The lamp flickers when the battery is nearly empty, because the circuit cuts the current."


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "papers" / "measurements"))
    return import_module("generator_questions"), import_module("generator_report")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chatting() as running:
        running.answers = {
            "Why does the lamp flicker?": "The lamp flickers because its battery is nearly empty.",
            "Who invented the lamp?": "I could not find this in the documents.",
        }
        yield running


def example(*answers: str, kind: str | None = None) -> Example:
    extra = {} if kind is None else {"kind": kind, "evidence": [LAMP], "corpus": "lamps"}
    return Example("1", "qa", "Why?", (answers,) if answers else (), extra=extra)


@pytest.mark.parametrize(
    ("asked", "answer", "abstained", "expected"),
    [
        (example("empty battery"), "It is the empty battery [1].", False, "right"),
        (example("battery is empty"), "Empty batteries do that [1].", False, "other words"),
        (example("empty battery"), "The circuit [1].", False, "wrong"),
        (example("1"), "[1]", False, "wordless"),
        (example("1"), " [1][2] …\n", False, "wordless"),
        (example("empty battery"), "the empty battery", True, "declined"),
        (example(), "Edison did [1].", False, "made up"),
        (example(), "[1]", False, "wordless"),
        (example(), "", True, "declined"),
        (example("yes", "it does", kind="yes-no"), "Yes, always [1].", False, "other words"),
        (example("yes", "it does", kind="yes-no"), "No, never [1].", False, "wrong"),
        (example("no", "not on maps", kind="yes-no"), "Yes, not maps [1].", False, "wrong"),
        (example("not on maps"), "It is on maps [1].", False, "wrong"),
        (example("red", "blue", kind="list"), "They are red [1].", False, "wrong"),
        (example("red", "blue", kind="list"), "Blue and red [1].", False, "right"),
        (example("red", "blue", kind="fact"), "It is red [1].", False, "right"),
        (example("x", kind="why"), f"{LAMP.upper()} [1]", False, "right"),
    ],
)
def test_an_answer_is_judged(
    modules: tuple[ModuleType, ModuleType],
    asked: Example,
    answer: str,
    abstained: bool,
    expected: str,
) -> None:
    assert modules[0].verdict(asked, answer, abstained=abstained) == expected


def test_squad_hides_the_paragraph_among_others_that_do_not_answer(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"title": f"Town {place % 3}", "text": f"Town {place % 3} has {place} towers and a mill.",
         "questions": []}
        for place in range(14)
    ]  # fmt: skip
    rows[4]["questions"] = [
        {"id": "a", "question": "How many towers?", "answers": [{"text": "4 towers", "start": 11}]},
        {"id": "b", "question": "How many mills?", "answers": []},
    ]
    rows[7]["text"] = "There are 4 towers here too."
    path = tmp_path / "reading" / "squad_dev.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (found,) = modules[0].load("squad", tmp_path, tmp_path / "none")
    texts = [document.page_content for document in found.documents]
    assert len(texts) == len(set(texts)) == 10
    assert sum("4 towers" in text for text in texts) == 1
    assert sum(document.metadata["title"] == "Town 1" for document in found.documents) == 4
    assert found == modules[0].load("squad", tmp_path, tmp_path / "none")[0]


def test_popqa_is_filled_up_with_other_pages_without_the_answer(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    own = [
        {"title": "Jo Mill", "text": f"Jo Mill acts in play {n}.", "answer": n == 1}
        for n in range(5)
    ]
    row = {"id": "p", "question": "What is Jo Mill's occupation?", "answers": ["actor"],
           "subject_title": "Jo Mill", "documents": own}  # fmt: skip
    pages = [
        {"id": str(n), "title": f"Jo {n}", "text": f"Jo {n} has an occupation."} for n in range(9)
    ]
    pages += [{"id": "x", "title": "Jo Mill", "text": "Jo Mill: occupation."},
              {"id": "y", "title": "Jo Actor", "text": "His occupation is actor."}]  # fmt: skip
    for name, rows in {"qa/popqa_dev": [row], "corpus/wikipedia": pages}.items():
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    (found,) = modules[0].load("popqa", tmp_path, tmp_path / "none")
    titles = [document.metadata["title"] for document in found.documents]
    assert titles[:5] == ["Jo Mill"] * 5
    assert len(titles) == 10
    assert not {"Jo Mill", "Jo Actor"} & set(titles[5:])
    assert found.gold_titles == ("Jo Mill",)


def prepared(folder: Path) -> tuple[Path, Path]:
    """Write two questions of documentation, with what was retrieved for them."""
    data, work = folder / "data", folder / "work"
    (data / "docs").mkdir(parents=True)
    work.mkdir()
    documents = [
        {"page_content": LAMP, "id": "1", "metadata": {"title": "Lamps", "source": "a.md"}}
    ]
    shared = {"corpus": "lamps", "kind": "why", "documents": documents}
    rows = [
        {"id": "lamps-1", "question": "Why does the lamp flicker?", "evidence": [LAMP],
         "answers": ["battery is nearly empty"]} | shared,
        {"id": "lamps-2", "question": "Who invented the lamp?", "evidence": [],
         "answers": []} | shared,
    ]  # fmt: skip
    (data / "docs/questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (work / "docs.json").write_text(json.dumps(rows))
    return data, work


@pytest.fixture
def ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run the program, in this process, and return what it tells about its progress."""
    data, work = prepared(tmp_path)
    monkeypatch.chdir(work)
    monkeypatch.syspath_prepend(str(ROOT / "papers" / "measurements"))
    program = import_module("generator")

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["generator.py", str(data), str(work), *arguments])
        program.main()
        return capsys.readouterr().err

    return run


def asked(server: ChatServer) -> int:
    """Count the questions that the server was asked; two more tell how fast it is."""
    return sum("lamp" in prompt for prompt in server.prompts)


def test_a_run_tells_its_time_goes_on_and_reports(
    server: ChatServer, ran: Callable[..., str], tmp_path: Path
) -> None:
    model = ["--model", "tiny", "--url", server.url, "--rows", "rag, ten documents", "crag"]
    planned = ran(*model, "--plan")
    assert "4 rows to answer" in planned
    assert "crag" in planned
    assert asked(server) == 0
    ran(*model, "--limit", "1")
    once = asked(server)
    ran(*model)
    assert 0 < once < asked(server) <= 4
    before = len(server.prompts)
    assert "0 rows to answer" in ran(*model)
    assert len(server.prompts) == before

    report = tmp_path / "page.md"
    ran("--report", str(report))
    lines = [line for line in report.read_text().splitlines() if line.startswith("| tiny | rag")]
    cells = [cell.strip() for cell in lines[0].split("|")[2:]]
    assert cells[:3] == ["rag, ten documents", "1", "1 of 1, 100 % (100 to 100)"]
    assert "0 of 1, 0 % (0 to 0)" in cells
    assert (tmp_path / "page.png").stat().st_size > 1000


def test_a_model_with_reflection_tokens_answers_its_rows_without_a_chat_model(
    ran: Callable[..., str], tmp_path: Path
) -> None:
    base = load_language_model(str(tiny_base(tmp_path / "base")))
    tuned = tmp_path / "tuned"
    save_language_model(base.model, base.tokenizer, tuned, "{}")
    told = ran("--model", "tuned", "--rows", "self-rag", "--reflection", str(tuned))
    assert "2 rows to answer" in told
    written = (tmp_path / "work/generator-docs-tuned.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in written]
    assert [(row["variant"], row["reflection"]["approximation"]) for row in rows] == [
        ("self-rag", "")
    ] * 2


def test_a_row_that_does_not_exist_is_refused_by_name(ran: Callable[..., str]) -> None:
    with pytest.raises(SystemExit, match="no 'crog'; there are: crag, rag, ten documents"):
        ran("--model", "m", "--rows", "crog")
