"""What the algorithms answered before they were rewritten: scores, choices, beams and answers.

Each line of `golden.jsonl` is a case, by its number, and what came of it. The cases go through the
public graphs; released behaviours have recordings of their own in `tests/papers/released`.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.documents import Document

from crag.correction.provenance import offered_document
from crag.graph import build_reflect, build_self_crag, build_self_rag
from crag.papers.settings import PaperSettings
from crag.parts import Candidate, Decision, Parts, Passage, Prefix
from crag.reflection_tokens import RELEVANCE, RETRIEVE, SUPPORT, UTILITY
from crag.state import Ending
from crag.testing import FakeEvaluator, FakeQuoter, FakeReflection, FakeRetriever

GOLDEN = Path(__file__).parent / "golden.jsonl"
CASES = (
    [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()] if GOLDEN.exists() else []
)
TEXTS = ("Ada wrote Note G. It was published.", "Babbage built it.", "Ada wrote Note G.", "Rain.")


class DrawnReflection(FakeReflection):
    """Candidates and decisions of all kinds; the same seed and question give the same."""

    def __init__(self, seed: int) -> None:
        super().__init__(self._drawn)
        self._seed = seed

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return drawn decisions."""
        super().decide(prefixes)
        draws = [self._draw("decide", prefix.answered) for prefix in prefixes]
        return [Decision(_shares(draw, RETRIEVE), draw.choice(RETRIEVE)) for draw in draws]

    def _drawn(self, prefix: Prefix, passage: Passage | None) -> Candidate:
        draw = self._draw(prefix.answered, passage.text if passage else "")
        words = draw.choice(
            ["", "Ada.", "Babbage.", f"Note {draw.randrange(99)}.", "On <paragraph>"]
        )
        ending: Any = draw.choice([*["retrieve"] * 5, *get_args(Ending)])
        return Candidate(
            text=words + draw.choice(["", *SUPPORT]) + draw.choice(["", "", *RETRIEVE]),
            relevance=_shares(draw, RELEVANCE) if passage else None,
            support=_shares(draw, SUPPORT) if draw.random() < 0.8 else None,
            utility=_shares(draw, UTILITY) if ending == "end" else None,
            mean_log_probability=-3 * draw.random(),
            tokens=len(words.split()) + 1,
            ending=ending,
        )

    def _draw(self, *place: str) -> random.Random:
        return random.Random(f"{self._seed}/{'/'.join(place)}")  # noqa: S311 - made-up data


def _shares(draw: random.Random, group: Sequence[str]) -> dict[str, float]:
    return {token: draw.random() for token in group if draw.random() < 0.9}


def drawn_settings(number: int) -> dict[str, Any]:
    """Draw the settings of a case from its number."""
    draw = random.Random(f"settings {number}")  # noqa: S311 - made-up data
    form = draw.choice(["short", "long", "long", "poster"])
    return {
        "form": form,
        "retrieval_mode": draw.choice(["adaptive", "adaptive", "always", "hard", "never"]),
        "delta": draw.choice([0.5, 0.2]),
        "segment_retrieval": draw.choice(["static", "dynamic"]),
        "constraints": draw.choice(["soft", "soft", "hard"]),
        "weight_support": draw.choice([1.0, 2.0]),
        "weight_utility": draw.choice([0.5, 1.0]),
        "beam_width": draw.choice([2, 1, 3]),
        "max_depth": draw.choice([4, 3, 6, 1]),
        "allow_own_knowledge": draw.random() < 0.3,
        "task": draw.choice(["default", "default", "pubhealth"]),
        "require_citations": draw.random() < 0.7,
    }


def outcome_of(number: int) -> dict[str, Any]:
    """Answer a case, and return what is compared."""
    settings = drawn_settings(number)
    backend = DrawnReflection(number)
    documents = [
        Document(text, metadata={"title": f"T{place}", "source": f"{place}.md"})
        for place, text in enumerate(TEXTS)
    ]
    retriever = FakeRetriever(documents=documents)
    question: dict[str, Any] = {"question": "Who wrote Note G?"}
    graph: Any
    match number % 4:
        case 0 | 1:
            graph = build_reflect(backend, retriever, quoter=FakeQuoter())
            offered = [offered_document(document, at) for at, document in enumerate(documents[1:])]
            for passage, grade in zip(offered, ("medium", "high", "low"), strict=True):
                passage["grade"] = grade  # type: ignore[typeddict-item]
            question["reflection"] = {"passages": offered}
        case 2:
            settings["form"] = settings["form"].replace("poster", "long")
            graph = build_self_rag(parts(backend, retriever))
        case _:
            graph = build_self_crag(parts(backend, retriever))
    return shown(graph.invoke(question, context=PaperSettings.model_validate(settings)))


def parts(backend: DrawnReflection, retriever: FakeRetriever) -> Parts:
    """Return parts whose evaluator grades by words."""
    evaluator = FakeEvaluator({"Note G": 0.9, "Babbage": 0.1}, otherwise=-0.9)
    return Parts(retriever=retriever, evaluator=evaluator, quoter=FakeQuoter(), reflection=backend)


def shown(state: dict[str, Any]) -> dict[str, Any]:
    """Return what is compared of a state."""
    reflection = state["reflection"]
    critiques = reflection.get("critiques", [])
    return {
        "answer": state["answer"],
        "outcome": state["outcome"],
        "raw": reflection.get("raw"),
        "cited": reflection.get("cited"),
        "score": round(reflection.get("score", 0.0), 9),
        "flags": reflection.get("flags"),
        "passages": len(reflection["passages"]),
        "choices": [
            [c["segment"], c["hypothesis"], c["action"], c["why"]] for c in reflection["choices"]
        ],
        "totals": [round(critique["total"], 6) for critique in critiques],
        "chosen": [at for at, critique in enumerate(critiques) if critique["chosen"]],
        "kept": [at for at, critique in enumerate(critiques) if critique["kept"]],
        "events": [entry["kind"] for entry in state["events"]],
    }


@pytest.mark.parametrize("number", range(len(CASES)))
def test_nothing_has_changed(number: int) -> None:
    assert outcome_of(number) == CASES[number]
