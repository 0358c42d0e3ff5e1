"""What other packages change in Self-RAG: rules by `compat`, and the form of the poster."""

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

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

WITHOUT_PASSAGE = "the answer without a passage: "
"""Comes before the reason in the critique of a draft that is the whole answer."""


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
    if not settings.compat:
        return Rules(settings)
    rules: Rules = added("released", "compat")(settings)
    return rules


@cache
def added(name: Literal["released", "poster"], setting: str) -> Any:
    """Return what another package adds: a subclass of `Rules`, or the algorithm of the poster.

    The algorithm takes what is asked, a grade for each passage ("high", "medium", "low"), the
    settings, and whether `own_knowledge` may answer.

    Raises:
        SettingsError: no package adds it.
    """
    part = load("crag.reflection", name)
    if part is None:
        raise SettingsError(setting, name, "install corrective-rag as a whole, with its papers")
    return part
