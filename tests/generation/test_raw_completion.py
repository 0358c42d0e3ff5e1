"""A base model gets its prompt as one string, byte for byte and without a chat template."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import HumanMessage, SystemMessage

from crag.answering.model_calls import aask, ask
from crag.errors import SettingsError
from crag.factory.parts import choose_model, choose_prompts
from crag.generation import load_chat_model
from crag.generation.raw_completion import RawCompletion
from crag.graph import build_rag
from crag.papers.settings import PaperSettings
from crag.parts import Parts
from crag.runtime.environment import Environment
from crag.testing import FakeEvaluator, FakeRetriever
from tests.loopback import Loopback, serving

COMPLETION = {
    "id": "1", "object": "text_completion", "created": 1, "model": "base",
    "choices": [{"index": 0, "text": " a poet\n", "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}  # fmt: skip
PROMPT = "[user]\n### Instruction:\n$question\n\n### Response:\n[Retrieval]<p>$knowledge</p>\n"


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(COMPLETION) as running:
        yield running


async def test_the_contents_of_the_messages_are_the_prompt(server: Loopback) -> None:
    model = load_chat_model("base", base_url=f"{server.url}/v1", retries=0, framing="raw")
    given = [SystemMessage("Rules."), HumanMessage("  Q?\n### Response:\n")]
    said = await aask(model, given)
    assert (said.text, said.problem) == ("a poet", None)
    assert said.usage == {"llm_calls": 1, "input_tokens": 7, "output_tokens": 3}
    assert server.requests[0]["path"] == "/v1/completions"
    assert server.requests[0]["prompt"] == ["Rules.\n\n  Q?\n### Response:\n"]
    assert server.requests[0]["temperature"] == 0


def test_a_prompt_of_ones_own_reaches_the_server_byte_for_byte(
    server: Loopback, tmp_path: Path
) -> None:
    (tmp_path / "answer_popqa.md").write_bytes(PROMPT.encode())
    environment = Environment(
        model="base", framing="raw", prompts=tmp_path, OPENAI_BASE_URL=f"{server.url}/v1",
        _env_file=None,
    )  # type: ignore[call-arg]  # fmt: skip
    document = Document("Henry was a poet.", metadata={"title": "Henry"})
    parts = Parts(
        retriever=FakeRetriever(documents=[document]),
        evaluator=FakeEvaluator(),
        model=choose_model(environment),
        prompts=choose_prompts(environment),
    )
    asked = {"question": "What was Henry?"}
    state = build_rag(parts).invoke(asked, context=PaperSettings.model_validate({"task": "popqa"}))
    (request,) = server.requests
    wanted = (
        "### Instruction:\nWhat was Henry?\n\n### Response:\n[Retrieval]<p>Henry was a poet.</p>"
    )
    assert request["prompt"] == [wanted]
    assert request["max_tokens"] == 100
    assert state["answer"] == "a poet"


def test_an_unknown_framing_is_named() -> None:
    with pytest.raises(SettingsError, match=r"CRAG_FRAMING.*'json'.*allowed are chat and raw"):
        load_chat_model("base", base_url="http://127.0.0.1:1/v1", framing="json")


def test_a_model_that_counts_no_tokens_answers_too() -> None:
    said = ask(RawCompletion(llm=FakeListLLM(responses=[" a poet\n"])), [HumanMessage("Q?")])
    assert (said.text, said.problem, said.usage) == ("a poet", None, {"llm_calls": 1})
