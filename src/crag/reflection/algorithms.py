"""What decides and answers in the graphs that reflect: ours, or another program's."""

from collections.abc import Callable
from typing import NamedTuple

from crag.parts import Prefix
from crag.reflection.beam import beam_round
from crag.reflection.driver import Algorithm, Driver
from crag.reflection.graded_loop import graded_loop
from crag.reflection.retrieval_decision import first_choice
from crag.reflection.short_form import short_form
from crag.state import Choice


class Algorithms(NamedTuple):
    """What the graphs of reflection run, by the names of their nodes."""

    decide: Callable[[Prefix, Driver], Choice] = first_choice
    short_form: Algorithm = short_form
    beam_step: Algorithm = beam_round
    """One round; it is repeated until the record has no `beam`."""
    graded_loop: Algorithm = graded_loop


OURS = Algorithms()
