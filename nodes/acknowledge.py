"""Reply to a message that asks nothing, such as thanks."""

from crag.answering.outcome import answer_message
from crag.settings import Settings
from crag.state import State
from crag.wording import civil_reply


def acknowledge(state: State, settings: Settings) -> State:  # noqa: ARG001 - a node's form
    """Say in a sentence what can be asked, without a search or a model."""
    answer = civil_reply(state["asked"], follows=True)  # Whether it does was asked before.
    messages = [answer_message(answer, [])]
    return State(answer=answer, outcome="nothing_asked", messages=messages)
