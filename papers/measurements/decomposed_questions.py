"""Measure questions of two parts, split and whole, over real documentation, without a model.

    python papers/measurements/decomposed_questions.py DOCS [--only NAME…] [--keep FOLDER]

In each corpus of `documentation.py`, answerable questions are paired in a fixed order and asked in
a row ("A? B?") and as one sentence ("A and b?"), and so are answerable questions with unanswerable
ones. Each pair is asked with the embedded default and no web: of `crag` that takes it whole
(`sub_questions` 1), of `crag` as it is shipped, and of `decomposed`; the rule splits it. A half is
right if the whole answer is right for it alone, and shown if what is shown is, sure or not; what an
answer repeats of the question does not count. FOLDER keeps the indexes.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

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
from crag.index.retriever import IndexRetriever
from crag.papers.experiments.report import table
from crag.parts import Parts
from crag.settings import Settings
from crag.state import State

SEED = 1
WAYS = {
    "crag, whole": (build_crag, Settings(sub_questions=1)),
    "crag": (build_crag, Settings()),
    "decomposed": (build_decomposed, Settings()),
}
"""The graph and the settings of each way to ask."""
FORMS = ("A? B?", "A and b?")


Asking = tuple[str, str]
"""A form, and a way to ask."""


class Pair(NamedTuple):
    """Two questions that are asked as one."""

    first: Asked
    second: Asked

    def asked(self, form: str) -> str:
        """Return both, one after the other or in one sentence."""
        first, second = self.first.question, self.second.question
        if form == FORMS[0]:
            return f"{first} {second}"
        return f"{first.rstrip('?. ')} and {second[0].lower()}{second[1:]}"

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
    shown: int
    """Those that an answer or the closest passages hold."""
    abstained: bool
    words: int
    """Words of the answer."""
    seconds: float


def main() -> None:
    """Ask every pair in every form and way, and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this folder")
    given = parser.parse_args()
    found: list[tuple[Pair, Asking, Outcome]] = []
    for index, asked in indexed_corpora(given.docs, questions(given.docs, given.only), given.keep):
        parts = embedded_parts(IndexRetriever(index))
        made = [
            (pair, (form, way), asked_in(parts, pair, form, way))
            for pair in pairs(asked)
            for form in FORMS
            for way in WAYS
        ]
        found += made
        print(f"{asked[0].corpus}: {len(found)} asked so far", flush=True)
        if given.details:
            for pair, (form, way), outcome in made:
                print(way, pair.asked(form), *outcome, sep=" | ")
    print(tabled(found))


def pairs(asked: Sequence[Asked]) -> Iterator[Pair]:
    """Pair answerable questions in a shuffled order, then unanswerable ones with one of them."""
    able = [one for one in asked if one.answerable]
    unable = [one for one in asked if not one.answerable]
    Random(SEED).shuffle(able)  # noqa: S311 - which questions meet, and no secret
    yield from map(Pair, able[::2], able[1::2])
    yield from map(Pair, able, unable)


def asked_in(parts: Parts, pair: Pair, form: str, way: str) -> Outcome:
    """Ask a pair in this form and way."""
    build, settings = WAYS[way]
    began = time.process_time()
    found = build(parts).invoke({"question": pair.asked(form)}, context=settings)
    took = time.process_time() - began
    state = cast("State", found)
    documents = "\n".join(one.page_content for one in state["documents"])
    knowledge = "\n".join(strip["text"] for strip in kept_strips(state, settings))
    sub_questions = state.get("sub_questions", [])
    shown = "" if state["certainty"] == "nothing_found" else state["answer"]
    for part in sub_questions:
        shown = shown.replace(part["question"], "")
    answer = "" if state["abstained"] else shown
    return Outcome(
        parts=len(sub_questions) or 1,
        retrieved=sum(holds_evidence(documents, one) for one in pair.answerable),
        kept=sum(holds_evidence(knowledge, one) for one in pair.answerable),
        right=sum(is_right(answer, one) for one in pair.answerable),
        shown=sum(is_right(shown, one) for one in pair.answerable),
        abstained=state["abstained"],
        words=len(answer.split()),
        seconds=took,
    )


def tabled(found: Sequence[tuple[Pair, Asking, Outcome]]) -> str:
    """Return a Markdown table with a row for each number of answerable halves, form and way."""
    names = (
        "halves answerable", "form", "asked of", "pairs", "split", "halves retrieved", "kept",
        "right", "both right", "shown", "both shown", "abstained", "words", "processor seconds",
    )  # fmt: skip
    rows = []
    for halves in (2, 1):
        for asking in dict.fromkeys(asking for _, asking, _ in found):
            some = [
                outcome
                for pair, asked, outcome in found
                if asked == asking and len(pair.answerable) == halves
            ]
            rows.append([str(halves), *asking, *map(str, _cells(some, halves))])
    return table(names, rows)


def _cells(outcomes: Sequence[Outcome], halves: int) -> Iterator[object]:
    number = max(1, len(outcomes))
    yield len(outcomes)
    yield sum(one.parts > 1 for one in outcomes)
    for name in ("retrieved", "kept"):
        yield f"{sum(getattr(one, name) for one in outcomes)} of {halves * len(outcomes)}"
    for name in ("right", "shown"):
        yield sum(getattr(one, name) for one in outcomes)
        yield sum(getattr(one, name) == halves for one in outcomes) if halves > 1 else ""
    yield sum(one.abstained for one in outcomes)
    yield f"{sum(one.words for one in outcomes) / number:.0f}"
    yield f"{sum(one.seconds for one in outcomes) / number:.2f}"


if __name__ == "__main__":
    main()
