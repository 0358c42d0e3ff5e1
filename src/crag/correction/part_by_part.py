"""Correct a question of several parts by each of them, and by the whole, in one run.

Read for two questions at once, a passage that answers one of them looks like half an answer. So
documents are found for each part too, and read for it in the call that reads those of the whole.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from crag.correction.action import decide, replaced
from crag.correction.decomposition import parts_by_rule
from crag.correction.evidence import strips_in_context
from crag.correction.scoring import LOWEST
from crag.parts import Passage
from crag.reading import Reading
from crag.settings import Settings
from crag.state import Action, State, Strip, SubQuestion, Thresholds


def parts_asked(state: Mapping[str, Any], question: str, settings: Settings) -> list[str]:
    """Return the parts that are corrected one by one; none for a question of one part.

    The tasks of the papers are not split, nor is a follow-up with an earlier question before it.
    """
    follow_up = state.get("follow_up")
    carries = follow_up is not None and follow_up["asked"] != state["question"]
    in_context = settings.strip_scores == "in_context" and settings.decomposition != "excerption"
    if carries or not (settings.cites and settings.refine and in_context):
        return []
    parts = parts_by_rule(question, settings.sub_questions)
    return parts if len(parts) > 1 else []


def found_for_whole(found: Sequence[Any], parts: Sequence[SubQuestion], settings: Settings) -> int:
    """Return how many of the documents are read for the whole question: those found for it."""
    return min(len(found), settings.k) if parts else len(found)


def to_read(
    question: str, passages: Sequence[Passage], parts: Sequence[SubQuestion], settings: Settings
) -> list[tuple[str, Passage]]:
    """Pair the question with the passages found for it, and each part with those found for that."""
    whole = passages[: found_for_whole(passages, parts, settings)]
    own = [(part["question"], passages[i]) for part in parts for i in part.get("documents", [])]
    return [*((question, passage) for passage in whole), *own]


def shared_out(
    readings: Sequence[Reading], parts: Sequence[SubQuestion]
) -> tuple[list[Reading], list[SubQuestion]]:
    """Return the readings of `to_read` by document, and the parts with theirs.

    A document that was not found for the whole question has its best reading for a part. Where
    nothing could be read, there are no parts.
    """
    if not readings:
        return [], []
    whole = len(readings) - sum(len(part.get("documents", [])) for part in parts)
    best, end, read = dict(enumerate(readings[:whole])), whole, list[SubQuestion]()
    for part in parts:
        found = part.get("documents", [])
        own = list(readings[end : end + len(found)])
        end += len(own)
        for index, reading in zip(found, own, strict=True):
            if index >= whole and (index not in best or best[index]["score"] < reading["score"]):
                best[index] = reading
        read.append({**part, "readings": own, "scores": [reading["score"] for reading in own]})
    return [best[index] for index in range(len(best))], read


def judged_parts(
    parts: Sequence[SubQuestion], settings: Settings, limits: Thresholds
) -> list[SubQuestion]:
    """Return the parts, each with the action that its own documents call for."""
    return [
        {
            **part,
            "thresholds": limits,
            "action": replaced(decide(part["scores"], **limits), settings),
        }
        for part in parts
    ]


def decided(
    scores: Sequence[float], parts: Sequence[SubQuestion], settings: Settings, limits: Thresholds
) -> Action:
    """Choose the action by the whole question, or by the part that fares worst, if that is better.

    `scores` are those of the documents for the whole. They are Incorrect only if they serve no
    part either.
    """
    if not parts:
        return decide(scores, **limits)
    of_parts = [part["scores"] for part in parts]
    worst = min(of_parts, key=lambda own: max(own, default=LOWEST))
    action = decide([*scores[: found_for_whole(scores, parts, settings)], *worst], **limits)
    serves_one = decide(list(chain.from_iterable(of_parts)), **limits) != "incorrect"
    return "ambiguous" if action == "incorrect" and serves_one else action


def best_scores(readings: Sequence[Reading], parts: Sequence[SubQuestion]) -> list[float]:
    """Return for each document how well it serves the whole, or the part that it serves best."""
    scores = [reading["score"] for reading in readings]
    for part in parts:
        for index, score in zip(part.get("documents", []), part["scores"], strict=True):
            scores[index] = max(scores[index], score)
    return scores


def strips_by_question(state: State, settings: Settings) -> list[list[Strip]]:
    """Return the scored strips of the documents of the whole question, then those of each part."""
    documents, readings = state["documents"], state["readings"]
    parts = state.get("sub_questions", [])
    whole = found_for_whole(documents, parts, settings)
    return [
        strips_in_context(documents[:whole], readings[:whole], settings),
        *(
            strips_in_context(
                [documents[i] for i in part.get("documents", [])],
                part.get("readings", []),
                settings,
            )
            for part in parts
        ),
    ]
