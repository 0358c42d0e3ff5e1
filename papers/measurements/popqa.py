"""What correction does to knowledge and answers, with the embedded default and without a key.

    python papers/measurements/popqa.py QUESTIONS.jsonl [--limit N] [--variants]

Each line holds a question, its gold answers and the documents retrieved for it. Plain retrieval and
Corrective RAG see the same documents; there is no web, so Incorrect leaves no knowledge. A text
holds an answer if any gold answer is a substring of it, case-sensitive (the paper's metric).
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document

from crag.answering.context import kept_strips
from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag, build_rag
from crag.papers.experiments.intervals import bootstrap
from crag.papers.experiments.report import table as markdown
from crag.papers.training.records import read_objects
from crag.parts import Evaluator, Parts
from crag.settings import Settings
from crag.state import ACTIONS, State
from crag.testing import FakeRetriever

VARIANTS = {
    "crag": Settings(),
    "crag, titles=none": Settings(titles="none"),
    "crag, titles=passage": Settings(titles="passage"),
    "crag, decomposition=selection": Settings(decomposition="selection"),
    "crag, decomposition=excerption": Settings(decomposition="excerption"),
    "crag, decomposition=fixed_num": Settings(decomposition="fixed_num"),
    "crag, strip_threshold=none": Settings(strip_threshold=None),
    "crag, refine=false": Settings(refine=False),
    "crag, only=correct": Settings(only="correct"),
}


class Outcome(NamedTuple):
    """One question under one method."""

    action: str
    words: int
    knows: bool
    """A gold answer stands in the knowledge."""
    answers: bool
    """A gold answer stands in the answer."""
    abstained: bool


def main() -> None:
    """Run both methods on every question and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path, help="JSONL of question, answers, documents")
    parser.add_argument("--limit", type=int, help="use only the first questions")
    parser.add_argument("--variants", action="store_true", help="also run variants of refinement")
    arguments = parser.parse_args()
    rows = read_objects(arguments.questions)[: arguments.limit]
    evaluator = load_evaluator()  # One for all, because it remembers what it has embedded.
    names = VARIANTS if arguments.variants else ["crag"]
    outcomes = {"rag": [one(row, "rag", Settings(), evaluator) for row in rows]}
    outcomes |= {
        name: [one(row, "crag", VARIANTS[name], evaluator) for row in rows] for name in names
    }
    print(table(outcomes, rows))


def one(row: Mapping[str, Any], method: str, settings: Settings, evaluator: Evaluator) -> Outcome:
    """Answer one question over its own documents."""
    parts = Parts(
        retriever=FakeRetriever(documents=documents_of(row)),
        evaluator=evaluator,
        quoter=ExtractiveAnswerer(evaluator),
    )
    build = build_crag if method == "crag" else build_rag
    state = build(parts).invoke({"question": row["question"]}, context=settings)
    knowledge = " ".join(strip["text"] for strip in kept_strips(cast("State", state), settings))
    return Outcome(
        action=state.get("action", "-"),
        words=len(knowledge.split()),
        knows=holds(knowledge, row["answers"]),
        answers=holds(state["answer"], row["answers"]),
        abstained=state["abstained"],
    )


def documents_of(row: Mapping[str, Any]) -> list[Document]:
    """Return the documents of a question."""
    return [
        Document(found["text"], metadata={"title": found["title"]}) for found in row["documents"]
    ]


def holds(text: str, answers: Sequence[str]) -> bool:
    """Say whether any gold answer is a substring of `text` (the paper's match)."""
    return any(answer in text for answer in answers)


def table(outcomes: Mapping[str, Sequence[Outcome]], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table: shares in per cent, with 95 % bootstrap intervals."""
    documents = sum(len(row["documents"]) for row in rows)
    names = (
        "method", "correct / ambiguous / incorrect", "knowledge holds an answer",
        "words of knowledge", "answer contains one", "abstained", "of those answered",
    )  # fmt: skip
    cells = []
    for name, results in outcomes.items():
        mix = Counter(result.action for result in results)
        cells.append(
            [
                name,
                " / ".join(str(mix[action]) for action in ACTIONS) if name != "rag" else "-",
                share([result.knows for result in results]),
                f"{fmean(result.words for result in results):.0f}",
                share([result.answers for result in results]),
                str(sum(result.abstained for result in results)),
                share([result.answers for result in results if not result.abstained]),
            ]
        )
    return f"{len(rows)} questions, {documents} documents\n\n{markdown(names, cells)}"


def share(values: Sequence[bool]) -> str:
    """Return the share of true values with its bootstrap interval, in per cent."""
    if not values:
        return "-"
    low, high = bootstrap(values, 0)
    return f"{100 * fmean(values):.0f} % ({100 * low:.0f} to {100 * high:.0f})"


if __name__ == "__main__":
    main()
