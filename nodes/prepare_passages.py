"""Prepare the passages that reflection answers from."""

from collections.abc import Sequence
from typing import Literal, get_args

from crag.correction.action import decide
from crag.correction.provenance import offered_document, title_of
from crag.correction.strips import joint_text, recompose, score_of
from crag.settings import Settings
from crag.state import (
    Action,
    OfferedPassage,
    Reflection,
    State,
    Strip,
    StripKind,
    known_action,
    strips_of_kind,
)

_GRADES: dict[Action, Literal["high", "medium", "low"]] = {
    "correct": "high", "ambiguous": "medium", "incorrect": "low",
}  # fmt: skip
"""The poster's, for the action that a document alone would have."""


def prepare_passages(state: State, settings: Settings, *, prepared: bool) -> State:
    """Offer documents as they are (Self-RAG), or the knowledge made of them (Self-CRAG).

    Knowledge has the title of its best strip. Its kinds are offered in the order correct,
    incorrect, ambiguous; one without any strip is left out. For the poster's rule the documents are
    offered with the evaluator's grades.
    """
    is_prepared = prepared and settings.form != "poster"
    passages = _knowledge(state, settings) if is_prepared else _documents(state)
    return State(reflection=Reflection(passages=passages))


def _documents(state: State) -> list[OfferedPassage]:
    """Offer each document that has text; those that were graded with their scores."""
    offered, limits = list[OfferedPassage](), state.get("thresholds")
    for place, document in enumerate(state["documents"]):
        passage = offered_document(document, place)
        if limits is not None:
            score = document.metadata["score"]
            passage["grade"] = _GRADES[decide([score], **limits)]
            for strip in passage["strips"]:
                strip["score"] = score
        offered += [passage] if passage["strips"] else []
    return offered


def _knowledge(state: State, settings: Settings) -> list[OfferedPassage]:
    internal = recompose(strips_of_kind(state, "document"))
    external = recompose(strips_of_kind(state, "web"))
    both = [*internal, *external]
    offers: list[tuple[Literal[Action, "web"], list[Strip]]] = [
        ("correct", internal),
        ("incorrect", external),
        ("ambiguous", both),
    ]
    match settings.variant.self_crag_knowledge:
        case "routed":
            offers = [(known_action(state["action"]), both)]
        case "distributed":
            offers[1:2] = [("web", [strip]) for strip in external]
    return [_passage(label, strips, state, settings) for label, strips in offers if strips]


def _passage(
    label: Literal[Action, "web"], strips: Sequence[Strip], state: State, settings: Settings
) -> OfferedPassage:
    """Write each strip on a line of its own, or without citations as the paper's files do.

    There strips are joined, and bear the title of the first document, wherever they come from.
    """
    title = max(strips, key=score_of)["source"]["title"]
    text = "\n".join(strip["text"].strip() for strip in strips)
    if not settings.cites:
        title = title_of(state["documents"][0]) if state["documents"] else title
        internal, external = (
            "; ".join(strip["text"].strip() for strip in strips if strip["kind"] == kind)
            for kind in get_args(StripKind)
        )
        text = joint_text(internal, external)
    return OfferedPassage(title=title, text=text, label=label, grade="", strips=list(strips))
