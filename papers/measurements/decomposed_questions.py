"""Measure questions of two parts, split and whole, over real documentation, without a model.

    python papers/measurements/decomposed_questions.py DOCS [--only NAME…]

In each corpus of `documentation.py`, answerable questions are paired in a fixed order and asked in
a row ("A? B?"), and so are answerable questions with unanswerable ones. Each pair is asked of the
graphs `crag` and `decomposed` with the embedded default and no web; the rule splits it. A half is
right if the whole answer is right for it alone.
"""

import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple, cast

from documentation import (
    Asked,
    embedded_parts,
    holds_evidence,
    indexed_corpora,
    is_right,
    parser_of,
    questions,
)

from crag.answering.context import kept_strips
from crag.graph import build_crag, build_decomposed
from crag.papers.experiments.report import table
from crag.retrieval.retriever import IndexRetriever
from crag.settings import Settings
from crag.state import State

SEED = 1
BUILDERS = {"whole": build_crag, "split": build_decomposed}


class Pair(NamedTuple):
    """Two questions that are asked as one."""

    first: Asked
    second: Asked

    @property
    def question(self) -> str:
        """Both, one after the other."""
        return f"{self.first.question} {self.second.question}"

    @property
    def answerable(self) -> list[Asked]:
        """The halves that a file of the corpus answers."""
        return [one for one in self if one.answerable]


class Outcome(NamedTuple):
    """What became of one pair."""

    parts: int
    retrieved: int
    """Answerable halves of which the documents hold the evidence."""
    kept: int
    """Answerable halves of which the kept strips do."""
    right: int
    abstained: bool
    words: int
    """Words of the answer."""
    seconds: float


def main() -> None:
    """Ask every pair of both graphs, and print the table."""
    given = parser_of(__doc__).parse_args()
    found: list[tuple[Pair, str, Outcome]] = []
    for index, asked in indexed_corpora(given.docs, questions(given.docs, given.only)):
        parts = embedded_parts(IndexRetriever(index))
        made = [
            (pair, name, _outcome(build(parts), pair))
            for pair in pairs(asked)
            for name, build in BUILDERS.items()
        ]
        found += made
        print(f"{asked[0].corpus}: {len(found) // len(BUILDERS)} pairs so far", flush=True)
        if given.details:
            for pair, name, outcome in made:
                print(name, pair.question, *outcome, sep=" | ")
    print(_table(found))


def pairs(asked: Sequence[Asked]) -> Iterator[Pair]:
    """Pair answerable questions in a shuffled order, then unanswerable ones with one of them."""
    able = [one for one in asked if one.answerable]
    unable = [one for one in asked if not one.answerable]
    Random(SEED).shuffle(able)  # noqa: S311 - which questions meet, and no secret
    yield from map(Pair, able[::2], able[1::2])
    yield from map(Pair, able, unable)


def _outcome(graph: Any, pair: Pair) -> Outcome:
    began = time.process_time()
    state: State = cast("State", graph.invoke({"question": pair.question}, context=Settings()))
    took = time.process_time() - began
    documents = "\n".join(one.page_content for one in state["documents"])
    knowledge = "\n".join(strip["text"] for strip in kept_strips(state, Settings()))
    answer = "" if state["abstained"] else state["answer"]
    return Outcome(
        parts=len(state.get("sub_questions", [])) or 1,
        retrieved=sum(holds_evidence(documents, one) for one in pair.answerable),
        kept=sum(holds_evidence(knowledge, one) for one in pair.answerable),
        right=sum(is_right(answer, one) for one in pair.answerable),
        abstained=state["abstained"],
        words=len(answer.split()),
        seconds=took,
    )


def _table(found: Sequence[tuple[Pair, str, Outcome]]) -> str:
    names = (
        "halves answerable", "asked", "pairs", "split", "halves retrieved", "kept", "right",
        "both right", "abstained", "words", "processor seconds",
    )  # fmt: skip
    rows = []
    for halves in (2, 1):
        for name in BUILDERS:
            some = [
                outcome
                for pair, asked, outcome in found
                if asked == name and len(pair.answerable) == halves
            ]
            rows.append([str(halves), name, *map(str, _cells(some, halves))])
    return table(names, rows)


def _cells(outcomes: Sequence[Outcome], halves: int) -> Iterator[object]:
    number = max(1, len(outcomes))
    yield len(outcomes)
    yield sum(one.parts > 1 for one in outcomes)
    for name in ("retrieved", "kept", "right"):
        yield f"{sum(getattr(one, name) for one in outcomes)} of {halves * len(outcomes)}"
    yield sum(one.right == halves for one in outcomes) if halves > 1 else ""
    yield sum(one.abstained for one in outcomes)
    yield f"{sum(one.words for one in outcomes) / number:.0f}"
    yield f"{sum(one.seconds for one in outcomes) / number:.2f}"


if __name__ == "__main__":
    main()
