"""Let the model decide whether to retrieve."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from crag.errors import ModelError, SettingsError
from crag.events import event
from crag.parts import Prefix, ReflectionBackend
from crag.reflection.driver import Driver, ReflectUpdate, asked_of, counting
from crag.reflection.retrieval_decision import chosen, first_choice
from crag.settings import Settings
from crag.state import Choice, Reflection, State


@dataclass(frozen=True)
class Decide:
    """Let the model decide (Self-RAG, Sec. 3.3 and Appendix A.3).

    If the model fails, the graph retrieves. `grades`: the graph grades its documents.

    Raises:
        SettingsError: the poster's rule in a graph that does not grade documents.
    """

    backend: ReflectionBackend
    decide: Callable[[Prefix, Driver], Choice] = first_choice
    _: KW_ONLY
    grades: bool

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Write the decision."""
        if settings.form == "poster" and not self.grades:
            allowed = "the poster's rule grades documents, so it needs Self-CRAG"
            raise SettingsError("form", settings.form, allowed)
        driver, events = Driver(self.backend, settings), []
        with counting() as spent:
            try:
                choice = self.decide(asked_of(state, settings).prefix(), driver)
            except ModelError as error:
                choice = chosen("retrieve", "the model could not be asked")
                events = [event("model_failed", "decide", error, "retrieve")]
        record = Reflection(approximation=self.backend.approximation, choices=[choice])
        return ReflectUpdate(reflection=record, events=events, usage=spent)
