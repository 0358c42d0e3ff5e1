"""Prepare the passages that reflection answers from."""

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from crag.correction.provenance import offered_document, title_of
from crag.correction.strips import joint_text, recompose, score_of
from crag.settings import Settings
from crag.state import (
    Action,
    OfferedPassage,
    Reflection,
    State,
    Strip,
    Thresholds,
    known_action,
    strips_of_kind,
)


class PreparePassagesUpdate(TypedDict):
    """Written by `prepare_passages`."""

    reflection: Reflection


def prepare_passages(state: State, settings: Settings, *, prepared: bool) -> PreparePassagesUpdate:
    """Offer documents as they are (Self-RAG), or the knowledge made of them (Self-CRAG).

    Knowledge has the title of its best strip, or that of the first document as in the official
    code, even if it comes from elsewhere. Its kinds are offered in the order correct, incorrect,
    ambiguous; one without any strip is left out. For the poster's rule the documents are
    offered with the evaluator's grades.
    """
    is_prepared = prepared and settings.form != "poster"
    passages = _knowledge(state, settings) if is_prepared else _documents(state)
    return {"reflection": Reflection(passages=passages)}


def _documents(state: State) -> list[OfferedPassage]:
    """Offer each document that has text; those that were graded with their scores."""
    offered, limits = list[OfferedPassage](), state.get("thresholds")
    for place, document in enumerate(state["documents"]):
        passage = offered_document(document, place)
        if limits is not None:
            score = document.metadata["score"]
            passage["grade"] = _grade(score, limits)
            for strip in passage["strips"]:
                strip["score"] = score
        offered += [passage] if passage["strips"] else []
    return offered


def _grade(score: float, limits: Thresholds) -> Literal["high", "medium", "low"]:
    if score >= limits["upper"]:
        return "high"
    return "medium" if score >= limits["lower"] else "low"


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
    """Join strips as the paper's knowledge files do, or each on a line of its own."""
    documents = state["documents"]
    if documents and settings.variant.knowledge_title == "first_document":
        title = title_of(documents[0])
    else:
        title = max(strips, key=score_of)["source"]["title"]
    between = "\n" if settings.cites else "; "

    def joined(strips: Sequence[Strip]) -> str:
        return between.join(strip["text"].strip() for strip in strips)

    text = joined(strips)
    if label == "ambiguous" and settings.variant.ambiguous_text == "joint":
        text = joint_text(
            joined([strip for strip in strips if strip["kind"] == "document"]),
            joined([strip for strip in strips if strip["kind"] == "web"]),
        )
    return OfferedPassage(title=title, text=text, label=label, grade="", strips=list(strips))
