"""Long form: the beam search of the paper, or the one that `compat` asks for."""

import time

from crag.reflection.beam import BeamSearch
from crag.reflection.driver import Asked, Clock, ReflectionOutcome, Steps
from crag.reflection.rules import rules_of
from crag.reflection_settings import ReflectionSettings


def long_form(
    asked: Asked, settings: ReflectionSettings, clock: Clock = time.monotonic
) -> Steps[ReflectionOutcome]:
    """Answer in segments by a beam search; `clock` returns seconds.

    A `ModelError` after the first segment ends the search with the best answer so far.
    """
    search = search_for(settings)(asked, settings, clock)
    while not search.over:
        yield from search.round()
    return search.outcome()


def search_for(settings: ReflectionSettings) -> type[BeamSearch]:
    """Return the search that the settings ask for."""
    return rules_of(settings).search or BeamSearch
