"""Chat models of the bench: their verdicts on texts, and base models that complete one string."""

import math
import re
from collections.abc import Iterator

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda

from crag.answering.model_calls import aask
from crag.errors import EvaluatorError, SettingsError
from crag.papers.bench.raw_completion import choose_generator
from crag.papers.bench.verdicts import Style, VerdictEvaluator, verdict
from crag.runtime.environment import Environment
from crag.testing import FakeChatModel
from tests.loopback import Loopback, serving


def judged_passage(messages: list[BaseMessage]) -> str:
    """Return the passage a prompt asks about, which is the last one in it."""
    found = re.findall(r"<passage>\n(.*?)\n</passage>", messages[-1].text, re.DOTALL)
    return str(found[-1])


@pytest.mark.parametrize("style", ["direct", "chain_of_thought", "few_shot"])
def test_each_text_is_one_call_in_a_fence_of_its_own(style: Style) -> None:
    def reply(messages: list[BaseMessage]) -> AIMessage:
        asked = messages[-1].text
        assert asked.count("</passage>") == asked.count("<passage>")
        return AIMessage("Yes." if "good" in judged_passage(messages) else "No.")

    texts = [f"{'good' if n % 3 == 0 else 'bad'} text {n} </passage>" for n in range(9)] + [" "]
    scores = VerdictEvaluator(RunnableLambda(reply), style=style).score("Where is it?", texts)
    assert scores == [1.0 if n % 3 == 0 else -1.0 for n in range(9)] + [-1.0]


def test_a_failed_a_refused_and_a_malformed_call_are_no_verdict() -> None:
    def reply(messages: list[BaseMessage]) -> AIMessage:
        match judged_passage(messages):
            case "fails":
                raise TimeoutError
            case "refused":
                return AIMessage("", additional_kwargs={"refusal": "I will not"})
            case text:
                return AIMessage(text)

    texts = ["yes", "fails", "refused", "perhaps", "no"]
    scores = VerdictEvaluator(RunnableLambda(reply)).score("Where?", texts)
    assert [scores[0], scores[4]] == [1.0, -1.0]
    assert all(math.isnan(score) for score in scores[1:4])


def test_if_every_call_fails_the_first_reason_is_raised_without_its_key() -> None:
    model = FakeChatModel(error=ValueError("bad key sk-secret-12345"))
    with pytest.raises(EvaluatorError, match=r"none of 2 texts: .*bad key") as caught:
        VerdictEvaluator(model).score("Where?", ["a", "", "b"])
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("style", "reply", "said"),
    [
        *(("direct", reply, True) for reply in (
            "yes", "**Answer**: Yes", "<answer>YES</answer>", "Yes or no? Yes.", "It does, so: yes",
        )),
        *(("few_shot", reply, False) for reply in (
            "**No.**", "_no_", "The answer is 'no'.", '{"answer": "no"}', "No mention of it.",
            "No, the passage does not say yes to that.",
        )),
        *(("direct", reply, None) for reply in (
            "", "maybe", "I cannot say yes or no.", "It says no; then again, yes.",
        )),
        ("chain_of_thought", "Does it say so? No. But the second does.\n\n**Yes**", True),
        ("chain_of_thought", "Yes, it is about him. Yet no date.\nAnswer: no.", False),
        ("chain_of_thought", "No doubt: No. 5 names it. Yes. It makes no other claim.", True),
        ("chain_of_thought", "The passage makes no mention of a city, no-one is", None),
    ],
)  # fmt: skip
def test_a_verdict_is_read_in_many_forms(style: Style, reply: str, said: bool | None) -> None:
    if said is not None:
        assert verdict(reply, style) is said
        return
    with pytest.raises(EvaluatorError, match="neither yes nor no"):
        verdict(reply, style)


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
