"""Forms are requested from any chat model, and read strictly from their fields."""

import json
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.constants import TAG_NOSTREAM

from crag.errors import ModelError
from crag.parts import ChatModel
from crag.plain import filled
from crag.reflection.backends.prompted import (
    Answer,
    Call,
    FormAsker,
    JudgedAnswer,
    JudgedSegment,
)
from crag.reflection.spending import counting
from crag.testing import FakeChatModel
from tests.reflection.backends.replying import ToolCaller, form

CALL = Call(JudgedAnswer, [HumanMessage("Q?")])
FILLED = JudgedAnswer.model_validate_json(form())


def asker(model: ChatModel, concurrency: int = 4, *, structured: bool = True) -> FormAsker:
    return FormAsker(model, [JudgedAnswer], concurrency=concurrency, structured=structured)


@pytest.mark.parametrize(
    "model",
    [
        ToolCaller(arguments=[json.loads(form())]),
        FakeChatModel(replies=[form()]),
        RunnableLambda(lambda _: f"Here: {form()}"),
        RunnableLambda(lambda _: AIMessage(form())),
    ],
)
def test_a_form_from_any_model(model: ChatModel) -> None:
    said = asker(model).ask(CALL)
    assert said.form == FILLED
    assert said.reply.usage["llm_calls"] == 1


@pytest.mark.parametrize(
    ("model", "problem", "detail"),
    [
        (ToolCaller(arguments=[None]), "empty", "nothing"),
        (ToolCaller(arguments=[{"relevance": "maybe"}]), "empty", "nothing"),
        (FakeChatModel(replies=["No idea."]), "failed", "does not fill in the form: 'No idea.'"),
        (FakeChatModel(refusal="I will not."), "refused", "I will not."),
        (FakeChatModel(error=ValueError("sk-secret-12345")), "failed", "ValueError"),
    ],
)
def test_a_reply_without_a_form_says_why(model: ChatModel, problem: str, detail: str) -> None:
    asks = asker(model)
    with counting() as spending:
        said = asks.ask(CALL)
    failure = asks.failure(said)
    assert said.form is None
    assert failure.problem == problem
    assert detail in str(failure)
    assert "sk-secret" not in str(failure)
    assert spending.usage["llm_calls"] == 1


def test_structured_output_can_be_switched_off() -> None:
    model = ToolCaller(arguments=[json.loads(form())])
    assert asker(model, structured=False).ask(CALL).form is None


def numbered(count: int) -> list[Call]:
    return [Call(JudgedAnswer, [HumanMessage(str(n))]) for n in range(count)]


class Crowd:
    """Reply with the number asked for, late unless `wanted` calls are there at the same time."""

    def __init__(self, wanted: int) -> None:
        self._lock, self._together = threading.Lock(), threading.Event()
        self._wanted, self._inside, self.most = wanted, 0, 0

    def __call__(self, messages: Any) -> str:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
            if self._inside >= self._wanted:
                self._together.set()
        self._together.wait(0.1)
        with self._lock:
            self._inside -= 1
        return form(text=messages[-1].text)


def test_calls_are_made_together_up_to_a_bound() -> None:
    crowd = Crowd(wanted=4)
    asks = asker(RunnableLambda(crowd), concurrency=3)
    with counting() as spending:
        said = asks.ask_all(numbered(7))
    assert [one.form and one.form.model_dump()["text"] for one in said] == list("0123456")
    assert 1 < crowd.most <= 3
    assert spending.usage["llm_calls"] == 7


def test_some_failures_leave_the_others_and_all_of_them_raise() -> None:
    def reply(messages: Any) -> str:
        if messages[-1].text == "1":
            raise ConnectionError
        return "?" if messages[-1].text == "2" else form()

    asks = asker(RunnableLambda(reply))
    assert [said.form for said in asks.ask_all(numbered(4))] == [
        FILLED,
        None,
        None,
        FILLED,
    ]
    with pytest.raises(ModelError, match="ConnectionError"), counting() as spending:
        asks.ask_all(numbered(3)[1:])
    assert spending.usage["llm_calls"] == 2
    assert asks.ask_all([]) == []


def test_no_way_of_asking_streams_tokens() -> None:
    seen: list[list[str]] = []

    class Tagged(ToolCaller):
        def _generate(self, *given: Any, run_manager: Any = None, **more: Any) -> ChatResult:
            seen.append(run_manager.tags)
            return super()._generate(*given, **more)

    model = Tagged(arguments=[json.loads(form()), None])
    asker(model).ask(CALL)
    asker(model, structured=False).ask(CALL)
    assert len(seen) == 2
    assert all(TAG_NOSTREAM in tags for tags in seen)


GOOD = {
    "relevance": "relevant", "text": "A fact.", "support": "fully", "utility": 5, "next": "end",
}  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        json.dumps(GOOD),
        f"Here it is:\n```json\n{json.dumps(GOOD, indent=1)}\n```\nDone.",
        f'<think>{{"relevance": "irrelevant"}}</think>{json.dumps(GOOD)}',
        json.dumps(GOOD | {"relevance": " [Relevant]", "support": "Fully", "more": 1}),
    ],
)
def test_one_object_is_found_in_a_reply(reply: str) -> None:
    assert filled(JudgedSegment, reply) == JudgedSegment.model_validate(GOOD)


@pytest.mark.parametrize(
    "changed",
    [
        {"relevance": "perhaps"},
        {"support": None},
        {"utility": 0},
        {"utility": 6},
        {"utility": "good"},
        {"next": "stop"},
        {"text": None},
    ],
)
def test_a_value_outside_its_labels_is_no_form(changed: dict[str, Any]) -> None:
    assert filled(JudgedSegment, json.dumps(GOOD | changed)) is None


@pytest.mark.parametrize("reply", ["", "I cannot.", "{", "}{", "[]", json.dumps([GOOD, GOOD])])
def test_other_replies_are_no_form(reply: str) -> None:
    assert filled(JudgedSegment, reply) is None


def test_two_objects_are_no_form() -> None:
    assert filled(Answer, '{"text": "a", "utility": 5} {"text": "b", "utility": 1}') is None
