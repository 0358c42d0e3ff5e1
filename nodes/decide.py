"""Let the model decide whether to retrieve."""

from collections.abc import Callable

from crag.errors import ModelError
from crag.events import event
from crag.parts import Prefix, ReflectionBackend
from crag.reflection.driver import Driver, asked_of, counting
from crag.reflection.retrieval_decision import chosen, first_choice
from crag.settings import Settings
from crag.state import Choice, Reflection, State


def decide(
    state: State,
    settings: Settings,
    backend: ReflectionBackend,
    choose: Callable[[Prefix, Driver], Choice] = first_choice,
) -> State:
    """Let the model decide (Self-RAG, Sec. 3.3 and Appendix A.3).

    If the model fails, the graph retrieves.
    """
    driver, events = Driver(backend, settings), []
    with counting() as spent:
        try:
            choice = choose(asked_of(state, settings).prefix(), driver)
        except ModelError as error:
            choice = chosen("retrieve", "the model could not be asked")
            events = [event("model_failed", "decide", error, "retrieve")]
    record = Reflection(approximation=backend.approximation, choices=[choice])
    return State(reflection=record, events=events, usage=spent)
