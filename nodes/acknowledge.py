"""Reply to a message that asks nothing, such as thanks."""

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from crag.answering.outcome import answer_message
from crag.settings import Settings
from crag.state import Outcome, State
from crag.wording import civil_reply


class AcknowledgeUpdate(TypedDict):
    """Written by `acknowledge`."""

    answer: str
    outcome: Outcome
    messages: list[AnyMessage]


def acknowledge(state: State, settings: Settings) -> AcknowledgeUpdate:  # noqa: ARG001 - a node's form
    """Say in a sentence what can be asked, without a search or a model."""
    answer = civil_reply(state["asked"], follows=True)  # Whether it does was asked before.
    messages = [answer_message(answer, [])]
    return AcknowledgeUpdate(answer=answer, outcome="nothing_asked", messages=messages)
