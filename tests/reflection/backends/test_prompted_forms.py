"""Forms are requested from any chat model, and read strictly from their fields."""

import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.constants import TAG_NOSTREAM

from crag.errors import ModelError
from crag.parts import ChatModel
from crag.reflection.backends.prompted import FORMS, Call, FormAsker
from crag.reflection.spending import counting
from crag.testing import FakeChatModel
from tests.reflection.backends.replying import form

JudgedAnswer, JudgedSegment = FORMS["reflect_answer"], FORMS["reflect_segment"]
CALL = Call(JudgedAnswer, [HumanMessage("Q?")])
FILLED = JudgedAnswer.model_validate_json(form())


def asker(model: ChatModel, concurrency: int = 4, *, structured: bool = True) -> FormAsker:
    return FormAsker(model, [JudgedAnswer], concurrency=concurrency, structured=structured)


@pytest.mark.parametrize(
    "model",
    [
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
        (FakeChatModel(replies=[""]), "empty", "nothing"),
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


GOOD = {
    "relevance": "relevant", "text": "A fact.", "support": "fully", "utility": 5, "next": "end",
}  # fmt: skip


def test_its_tokens_are_not_streamed() -> None:
    seen: list[list[str]] = []

    class Tagged(FakeChatModel):
        def _generate(self, *given: Any, run_manager: Any = None, **more: Any) -> ChatResult:
            seen.append(run_manager.tags)
            return super()._generate(*given, **more)

    asker(Tagged(replies=[form()])).ask(CALL)
    assert TAG_NOSTREAM in seen[0]
