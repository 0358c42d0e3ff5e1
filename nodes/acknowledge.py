"""Reply to a message that asks nothing, such as thanks."""

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from crag.answering.outcome import chat_reply
from crag.settings import Settings
from crag.state import Outcome, State
from crag.wording import civil_reply


class AcknowledgeUpdate(TypedDict):
    """Written by `acknowledge`; `messages` stays empty unless the message came as one."""

    answer: str
    outcome: Outcome
    messages: list[AnyMessage]


class Acknowledge:
    """Say in a sentence what can be asked, without a search or a model."""

    def run(self, state: State, settings: Settings) -> AcknowledgeUpdate:  # noqa: ARG002 - a node's form
        """Write the reply."""
        answer = civil_reply(state["question"], follows=True)  # Whether it does was asked before.
        messages = chat_reply(state, answer, [])
        return AcknowledgeUpdate(answer=answer, outcome="nothing_asked", messages=messages)
