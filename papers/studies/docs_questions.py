"""Measure what correction does over real documentation, with the embedded default and no web.

    python -m crag.papers.studies.docs_questions DOCS [--cache FILE] [--reader FOLDER]

DOCS and the judgement of answers are those of `documentation.py`; ten documents are retrieved for
each question, and FILE keeps them for the next run. `today` is the graph as it is shipped. The
reader reads each document once (`docs_reading.py`); its thresholds are fitted on five corpora and
measured on the sixth.
"""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from crag.answering.context import kept_strips
from crag.graph import build_crag
from crag.papers.bench.report import table
from crag.papers.studies.documentation import (
    Asked,
    count_words,
    embedded_parts,
    holds_evidence,
    is_right,
    parser_of,
    retrieved,
    shown_passages,
)
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeRetriever


class Outcome(NamedTuple):
    """What became of one question."""

    action: str
    retrieved: bool
    """The ten documents hold the evidence."""
    kept: bool
    """The knowledge after refinement does, whatever the action."""
    words: int
    """Words of that knowledge."""
    words_before: int
    """Words of the documents."""
    answer: str
    abstained: bool
    right: bool
    first: bool
    """The first passage that is shown holds the answer, sure or not."""
    shown: str
    """What is shown: an answer, or at most two closest passages."""


def main() -> None:
    """Retrieve, answer, print the tables."""
    parser = parser_of(__doc__)
    parser.add_argument("--cache", type=Path, help="keep what was retrieved in this file")
    parser.add_argument("--reader", help="name or folder of a reader to measure as well")
    parser.add_argument("--without-today", action="store_true", help="measure the reader only")
    given = parser.parse_args()
    asked = retrieved(given.docs, given.cache, given.only)
    results: dict[str, list[Outcome]] = {}
    if not given.without_today:
        results["today"] = [today(one) for one in asked]
    if given.reader:
        from crag.papers.studies.docs_reading import measured

        results |= measured(asked, given.reader)
    print(tables(asked, results))
    if given.details:
        for name, outcomes in results.items():
            for one, outcome in zip(asked, outcomes, strict=True):
                print(name, one.id, *outcome, sep=" | ")


def today(one: Asked) -> Outcome:
    """Answer a question with the graph as it is shipped."""
    parts = embedded_parts(FakeRetriever(documents=list(one.documents)))
    settings = Settings()
    state = build_crag(parts).invoke({"question": one.question}, context=settings)
    action, strips = state["action"], kept_strips(cast("State", state), settings)
    if action == "incorrect":  # Its documents are not refined, so that there is nothing to count.
        refined = settings.model_copy(update={"only": "correct"})
        again = build_crag(parts).invoke({"question": one.question}, context=refined)
        strips = kept_strips(cast("State", again), refined)
    knowledge = [strip["text"] for strip in strips]
    answer = state["answer"] if state["outcome"] == "answered" else ""
    return outcome(one, action, knowledge, answer, shown_passages(state["answer"]))


def outcome(
    one: Asked, action: str, knowledge: Sequence[str], answer: str, passages: Sequence[str]
) -> Outcome:
    """Judge knowledge, answer and what is shown; an empty answer is an abstention."""
    texts = [document.page_content for document in one.documents]
    return Outcome(
        action=action,
        retrieved=holds_evidence("\n".join(texts), one),
        kept=holds_evidence("\n".join(knowledge), one),
        words=count_words(knowledge),
        words_before=count_words(texts),
        answer=answer,
        abstained=not answer,
        right=is_right(answer, one),
        first=is_right("".join(passages[:1]), one),
        shown="\n".join(passages),
    )


def tables(asked: Sequence[Asked], results: Mapping[str, Sequence[Outcome]]) -> str:
    """Return Markdown tables: all questions, by corpus, by kind, what is said, and the stages."""
    both = {name: list(zip(asked, found, strict=True)) for name, found in results.items()}
    groups = [
        table(("", "", *_KEPT), [["all", name, *_kept(found)] for name, found in both.items()])
    ]
    for key in ("corpus", "kind"):
        rows = [
            [group, name, *_kept([(a, o) for a, o in found if getattr(a, key) == group])]
            for group in dict.fromkeys(getattr(one, key) for one in asked)
            for name, found in both.items()
        ]
        groups.append(table((key, "", *_KEPT), rows))
    said = table(("", *_SAID), [[name, *_said(found)] for name, found in both.items()])
    return "\n\n".join([*groups, said, *(_stages(name, found) for name, found in both.items())])


Judged = Sequence[tuple[Asked, Outcome]]
_KEPT = (
    "answerable", "evidence retrieved", "kept", "words kept", "right", "wrong", "abstained",
    "unanswerable", "false answers",
)  # fmt: skip
_SAID = (
    "first passage right", "answered or among the closest", "sure and wrong", "sure, unanswerable",
    "closest shown, unanswerable", "Correct, answerable", "Correct, unanswerable",
    "Incorrect, answerable", "words shown, median",
)  # fmt: skip


def _kept(judged: Judged) -> Iterator[str]:
    """Yield what is kept and how it is answered."""
    able = [outcome for one, outcome in judged if one.answerable]
    unable = [outcome for one, outcome in judged if not one.answerable]
    words = sum(outcome.words for _, outcome in judged)
    yield str(len(able))
    yield str(sum(outcome.retrieved for outcome in able))
    yield str(sum(outcome.retrieved and outcome.kept for outcome in able))
    yield f"{100 * words / sum(outcome.words_before for _, outcome in judged):.0f} %"
    yield str(sum(outcome.right for outcome in able))
    yield str(sum(not outcome.right and not outcome.abstained for outcome in able))
    yield str(sum(outcome.abstained for outcome in able))
    yield str(len(unable))
    yield str(sum(not outcome.abstained for outcome in unable))


def _said(judged: Judged) -> Iterator[str]:
    """Yield what is said, and how surely."""
    able = [(one, outcome) for one, outcome in judged if one.answerable]
    unable = [outcome for one, outcome in judged if not one.answerable]
    words = [count_words([outcome.shown]) for _, outcome in able if outcome.shown]
    yield str(sum(outcome.first for _, outcome in able))
    yield str(sum(is_right(outcome.shown, one) for one, outcome in able))
    yield str(sum(not outcome.abstained and not outcome.right for _, outcome in able))
    yield str(sum(not outcome.abstained for outcome in unable))
    yield str(sum(outcome.abstained and bool(outcome.shown) for outcome in unable))
    yield str(sum(outcome.action == "correct" for _, outcome in able))
    yield str(sum(outcome.action == "correct" for outcome in unable))
    yield str(sum(outcome.action == "incorrect" for _, outcome in able))
    yield f"{statistics.median(words):g}" if words else "-"


def _stages(name: str, judged: Judged) -> str:
    """Count where questions failed, by corpus."""
    counts = Counter((stage(one, outcome), one.corpus) for one, outcome in judged)
    corpora = list(dict.fromkeys(one.corpus for one, _ in judged))
    rows = []
    for kind in dict.fromkeys(kind for kind, _ in sorted(counts)):
        found = [counts[kind, corpus] for corpus in corpora]
        rows.append([kind, *map(str, found), str(sum(found))])
    return table((name, *corpora, "all"), rows)


def stage(one: Asked, outcome: Outcome) -> str:
    """Name the stage that a question failed at, or say that it did not."""
    if not one.answerable:
        return "nothing to answer" if outcome.abstained else "answered without evidence"
    if outcome.right:
        return "right"
    if not outcome.retrieved:
        return "retrieval: evidence not among the ten"
    if outcome.action == "incorrect":
        return "action: documents discarded"
    if not outcome.kept:
        return "refinement: evidence dropped"
    return "quoting: nothing quoted" if outcome.abstained else "quoting: something else quoted"


if __name__ == "__main__":
    main()
