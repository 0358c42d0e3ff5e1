"""A base model gets its prompt as one string, byte for byte and without a chat template."""

from collections.abc import Iterator

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from crag.answering.model_calls import aask
from crag.errors import SettingsError
from crag.papers.bench.raw_completion import choose_generator
from crag.runtime.environment import Environment
from tests.loopback import Loopback, serving

COMPLETION = {
    "id": "1", "object": "text_completion", "created": 1, "model": "base",
    "choices": [{"index": 0, "text": " a poet\n", "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(COMPLETION) as running:
        yield running


async def test_the_contents_of_the_messages_are_the_prompt(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_FRAMING", "raw")
    monkeypatch.setenv("CRAG_MODEL", "base")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    model = choose_generator(Environment())
    assert model is not None
    given = [SystemMessage("Rules."), HumanMessage("  Q?\n### Response:\n")]
    said = await aask(model, given)
    assert (said.text, said.problem) == ("a poet", None)
    assert said.usage == {"llm_calls": 1, "input_tokens": 7, "output_tokens": 3}
    assert server.requests[0]["path"] == "/v1/completions"
    assert server.requests[0]["prompt"] == ["Rules.\n\n  Q?\n### Response:\n"]
    assert server.requests[0]["temperature"] == 0


def test_an_unknown_framing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_FRAMING", "json")
    with pytest.raises(SettingsError, match=r"CRAG_FRAMING.*'json'.*allowed are chat and raw"):
        choose_generator(Environment())
