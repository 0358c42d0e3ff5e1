"""Let the model decide whether to retrieve."""

from crag.errors import ModelError, SettingsError
from crag.events import event
from crag.parts import Prefix, ReflectionBackend
from crag.reflection.driver import Driver, ReflectUpdate
from crag.reflection.retrieval_decision import chosen, first_choice
from crag.reflection.rules import OURS, Rules
from crag.reflection.spending import counting
from crag.settings import Settings
from crag.state import Reflection, State


class Decide:
    """Let the model decide (Self-RAG, Sec. 3.3 and Appendix A.3).

    If the model fails, the graph retrieves. `grades`: the graph grades its documents.

    Raises:
        SettingsError: the poster's rule in a graph that does not grade documents.
    """

    def __init__(self, backend: ReflectionBackend, rules: Rules = OURS, *, grades: bool) -> None:
        self._backend, self._rules, self._grades = backend, rules, grades

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Write the decision."""
        if settings.form == "poster" and not self._grades:
            allowed = "the poster's rule grades documents, so it needs Self-CRAG"
            raise SettingsError("form", settings.form, allowed)
        posed = settings.profile.posed(state)
        prefix = Prefix(settings.profile.instruction_for(posed["question"], posed["options"]))
        driver = Driver(self._backend, settings, rules=self._rules)
        events = []
        with counting() as spending:
            try:
                choice = first_choice(prefix, driver, short=settings.form != "long")
            except ModelError as error:
                choice = chosen("retrieve", "the model could not be asked")
                events = [event("model_failed", "decide", error, "retrieve")]
        record = Reflection(approximation=self._backend.approximation, choices=[choice])
        return ReflectUpdate(reflection=record, events=events, usage=spending.usage)
