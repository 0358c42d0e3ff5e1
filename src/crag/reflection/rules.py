"""Rules of the forms of Self-RAG that `compat` can change; as they are here, they are our own."""

from functools import cache
from typing import TYPE_CHECKING, ClassVar

from crag.errors import SettingsError
from crag.parts import Candidate, Decision, Prefix
from crag.reflection.cleaning import short_answer
from crag.reflection.driver import Asked, Steps
from crag.reflection.scoring import CritiqueScores, retrieve_ratio, score
from crag.reflection_settings import ReflectionSettings
from crag.runtime.entry_points import load
from crag.state import Flag

if TYPE_CHECKING:
    from crag.reflection.beam import BeamSearch


class Rules:
    """Our own rules; a subclass brings back what released programs do."""

    search: ClassVar["type[BeamSearch] | None"] = None
    """The search of the long form, if it is not `BeamSearch`."""
    empty_answers_compete: bool = False
    """Short form: whether an empty answer is compared with others."""

    def __init__(self, settings: ReflectionSettings) -> None:
        self.settings = settings

    def scored(self, candidate: Candidate, *, has_passage: bool) -> CritiqueScores:
        """Score a whole answer of the short form."""
        return score(candidate, self.settings, has_passage=has_passage)

    def share(self, decision: Decision, *, opens_short: bool = False) -> tuple[float, list[Flag]]:
        """Return the share of the token Retrieval; `opens_short`: for a whole short answer."""
        del opens_short  # The released rules use it.
        return retrieve_ratio(decision.retrieve)

    def objection(self, prefix: Prefix) -> Steps[str]:
        """Return why a long answer begins without retrieval, whatever the share; mostly empty."""
        del prefix
        yield from ()
        return ""

    def compared(self, text: str, asked: Asked, *, has_passage: bool) -> str:
        """Return the text of a short answer by which it is compared with others."""
        del asked, has_passage
        return short_answer(text)

    def shown(self, answer: str) -> str:
        """Return the short answer that won as a user reads it."""
        return answer


def rules_of(settings: ReflectionSettings) -> Rules:
    """Return the rules that the settings ask for.

    Raises:
        SettingsError: `compat` names a quirk, and no package is installed that has it.
    """
    return _released()(settings) if settings.compat else Rules(settings)


@cache
def _released() -> type[Rules]:
    rules: type[Rules] | None = load("crag.reflection", "released")
    if rules is None:
        raise SettingsError("compat", "set", "install corrective-rag as a whole, with its papers")
    return rules
