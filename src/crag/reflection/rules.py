"""What another program may decide, score or show otherwise: our rules, one method each.

A subclass is given to `crag.graph.build_reflect` and the graphs that use it. Each method receives
the settings of the run, which may be a subclass of `Settings` with settings of the rules' own.
"""

from typing import TYPE_CHECKING, ClassVar

from crag.parts import Candidate, Decision, Prefix
from crag.reflection.cleaning import short_answer
from crag.reflection.scoring import CritiqueScores, retrieve_ratio, score
from crag.settings import ReflectionSettings

if TYPE_CHECKING:
    from crag.reflection.beam import BeamSearch
    from crag.reflection.driver import Asked, Driver


class Rules:
    """Our own rules."""

    search: ClassVar["type[BeamSearch] | None"] = None
    """The search of the long form, if it is not `BeamSearch`."""

    def scored(
        self, candidate: Candidate, settings: ReflectionSettings, *, has_passage: bool
    ) -> CritiqueScores:
        """Score a whole answer of the short form."""
        return score(candidate, settings.weights, has_passage=has_passage)

    def share(
        self, decision: Decision, settings: ReflectionSettings, *, opens_short: bool = False
    ) -> float:
        """Return the share of the token Retrieval; `opens_short`: for a whole short answer."""
        del settings, opens_short
        return retrieve_ratio(decision.retrieve)

    def objection(self, prefix: Prefix, driver: "Driver") -> str:
        """Return why a long answer begins without retrieval, whatever the share; mostly empty."""
        del prefix, driver
        return ""

    def compared(
        self, text: str, asked: "Asked", settings: ReflectionSettings, *, has_passage: bool
    ) -> str:
        """Return the text of a short answer by which it is compared with others."""
        del asked, settings, has_passage
        return short_answer(text)

    def shown(self, answer: str, settings: ReflectionSettings) -> str:
        """Return the short answer that won as a user reads it."""
        del settings
        return answer

    def empty_compete(self, settings: ReflectionSettings) -> bool:
        """Return whether an empty short answer is compared with others."""
        del settings
        return False

    def checks(self, settings: ReflectionSettings) -> bool:
        """Return whether an unsure answer is only likely, and quotations replace a wrong one."""
        del settings
        return True

    def cites_as_written(self, settings: ReflectionSettings) -> bool:
        """Return whether an answer keeps the numbers with which its segments were joined."""
        del settings
        return False


OURS = Rules()
