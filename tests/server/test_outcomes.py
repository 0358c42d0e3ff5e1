"""The four outcomes, through every door: terminal, files, server, OpenAI's client and MCP."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from crag.answering.outcome import NOT_FOUND
from crag.cli.ask import EXIT_CODES
from crag.page import mcp_tools
from crag.state import Outcome
from tests.commands import crag
from tests.server.chat import Chat
from tests.server.conftest import KEY
from tests.server.test_mcp import call, state_of

pytestmark = [pytest.mark.slow, pytest.mark.development]
QUOTED = "was dug in 1731"
OUTCOMES = {
    "answered": ("When was the harbour of Quellmoor dug?", "“The harbour of Quellmoor", QUOTED, 0),
    "likely": ("How old is the harbour of Quellmoor?", "“The harbour of Quellmoor", QUOTED, 0),
    "not_found": ("Who won the football world cup in 1990?", NOT_FOUND, NOT_FOUND, 4),
    "nothing_asked": ("Many thanks!", "You are welcome.", "about the documents", 0),
}
"""By outcome: a question, how its answer begins, what it holds, and the exit code of `ask`."""


def test_every_door_knows_every_outcome() -> None:
    known = set(get_args(Outcome))
    assert known == set(OUTCOMES) == set(EXIT_CODES) == set(mcp_tools.OUTCOMES)


@pytest.fixture(autouse=True)
def _nothing_said(chat: Chat) -> Iterator[None]:
    """Have the model say nothing, so that the documents are quoted."""
    with chat.saying(""):
        yield


@pytest.fixture(scope="module")
def variables(folder: Path, chat: Chat) -> dict[str, str]:
    return {
        "CRAG_INDEX": str(folder / "index"),
        "CRAG_MODEL": "local",
        "OPENAI_BASE_URL": chat.url,
        "OPENAI_API_KEY": KEY,
    }


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_terminal_says_it_and_so_does_its_exit_code(
    outcome: str, variables: Mapping[str, str]
) -> None:
    question, start, held, code = OUTCOMES[outcome]
    done = crag("ask", question, environment=variables)
    assert done.returncode == code, done.stderr
    assert f"\n{start}" in done.stdout
    assert held in done.stdout
    state = json.loads(crag("ask", question, "--json", environment=variables).stdout)
    assert state["outcome"] == outcome
    assert state["answer"].startswith(start)
    assert bool(state["citations"]) == (outcome in {"answered", "likely"})


def test_files_of_answers_have_it(tmp_path: Path, variables: Mapping[str, str]) -> None:
    questions = tmp_path / "questions.jsonl"
    lines = (
        {"question": question, "answers": ["1731"], "answerable": outcome != "not_found"}
        for outcome, (question, *_) in OUTCOMES.items()
    )
    questions.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    answers, report = tmp_path / "answers.jsonl", tmp_path / "report"
    done = crag("batch", questions, "--output", answers, environment=variables)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
    assert sorted(row["outcome"] for row in rows) == sorted(OUTCOMES)
    done = crag("evaluate", questions, "--output", report, "--json", environment=variables)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["outcomes"] == dict.fromkeys(OUTCOMES, 1)
    assert summary["lost"] == {"not retrieved": 1}
    assert "1 nothing found" in (report / "report.html").read_text("utf-8")


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_the_server_says_it_in_every_protocol(outcome: str, url: str, client: Any) -> None:
    import openai  # Here, as each worker collects this file.

    question, start, held, _ = OUTCOMES[outcome]
    state = client.runs.wait(None, "crag", input={"question": question})
    told = state_of(await call(url, "crag", {"question": question, "trace": True}))
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0) as chatting:
        asked: list[Any] = [{"role": "user", "content": question}]
        reply = chatting.chat.completions.create(model="crag", messages=asked)
    extra: Any = reply.model_extra
    content = reply.choices[0].message.content or ""
    for said, sure in (
        (state["answer"], state["outcome"]),
        (told["answer"], told["outcome"]),
        (content, extra["crag"]["outcome"]),
    ):
        assert sure == outcome
        assert said.startswith(start)
        assert held in said
