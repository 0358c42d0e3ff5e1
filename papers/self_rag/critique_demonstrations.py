"""Judged cases that a chat model is shown before it labels one: as many as the paper shows.

Seven for Retrieve from the input alone, one before a later sentence, two for IsRel, one for IsSup,
two for IsUse (Self-RAG, Appendix on data creation). The cases are ours.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from crag.papers.self_rag.critique_cases import Case, Kind, case_text


class Demonstration(NamedTuple):
    """A case, its label without brackets, and why."""

    case: Case
    label: str
    reason: str


_BRIDGE = "Explain how a suspension bridge carries its load."
_TOWERS = (
    "Suspension bridge\nIn a suspension bridge the deck hangs from cables. The main cables run "
    "over towers and are anchored at both ends."
)


def _shown(kind: Kind, label: str, reason: str, instruction: str, **fields: str) -> Demonstration:
    return Demonstration(Case(kind=kind, instruction=instruction, **fields), label, reason)


DEMONSTRATIONS: Mapping[Kind, tuple[Demonstration, ...]] = {
    "retrieve": (
        _shown("retrieve", "Retrieval", "Documents list such habits and what they bring.",
               "Name two habits that help against back pain."),
        _shown("retrieve", "No Retrieval", "It asks for an own experience.",
               "Tell me about a day on which you changed your mind."),
        _shown("retrieve", "No Retrieval", "It asks for something invented.",
               "Write the first lines of a tale about a lighthouse keeper."),
        _shown("retrieve", "Retrieval", "A well-known fact, which a document still confirms.",
               "Which river flows through Vienna?"),
        _shown("retrieve", "No Retrieval", "It is a calculation, and its numbers are given.",
               "A rectangle is 3 m wide and 5 m long. What is its area?"),
        _shown("retrieve", "No Retrieval", "All that is needed is the sentence itself.",
               "Correct the order of these words: garden the in cat the sleeps"),
        _shown("retrieve", "Retrieval", "A scientific account gains from a reliable source.",
               "Describe how coral reefs are formed."),
    ),
    "retrieve_next": (
        _shown("retrieve_next", "Retrieval", "The evidence says how such a bridge hangs, not which "
               "is the longest.", _BRIDGE, evidence=_TOWERS,
               preceding="The deck hangs from cables that run over towers.",
               output="The longest of them has a span of about two kilometres."),
    ),
    "relevance": (
        _shown("relevance", "Relevant", "It says what carries the deck.", _BRIDGE,
               evidence=_TOWERS),
        _shown("relevance", "Irrelevant", "It is about the tolls of a bridge, not its load.",
               _BRIDGE,
               evidence="Old Harbour Bridge\nThe toll was raised twice and dropped in 1998."),
    ),
    "support": (
        _shown("support", "Fully supported", "Cables, towers and anchors stand in the evidence.",
               _BRIDGE, evidence=_TOWERS, preceding="The deck hangs from cables.",
               output="These run over towers and are anchored at both ends."),
    ),
    "utility": (
        _shown("utility", "Utility:2", "It names another year than was asked for.",
               "Who won the town's chess cup in 2021?",
               output="In 2019 the cup was won by Mira Anders."),
        _shown("utility", "Utility:3", "Four dishes instead of six, and none is described.",
               "Recommend six dishes of the region and describe each.",
               output="You could try the soup, the dumplings, the trout and the plum cake."),
    ),
}  # fmt: skip


def demonstrated(kind: Kind) -> str:
    """Return the demonstrations of a kind, each a case with the reply to it."""
    shown = (
        f"<case>\n{''.join(case_text(one.case)).strip()}\n</case>\n"
        + json.dumps({"reason": one.reason, "label": one.label})
        for one in DEMONSTRATIONS[kind]
    )
    return "\n\n".join(shown)
