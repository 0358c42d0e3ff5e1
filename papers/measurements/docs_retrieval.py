"""Measure how early retrieval finds the evidence of the questions over real documentation.

    python papers/measurements/docs_retrieval.py DOCS [--only NAME…] [--keep FOLDER] [--details]

The first ten chunks are retrieved for each question of `documentation.py` that has evidence, by
meaning, by words, and by both; FOLDER keeps the indexes, so that the next run embeds only what
changed. A chunk holds the evidence of a question if one of the excerpts stands in it.
"""

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import get_args

from documentation import Asked, holds_evidence, indexed_corpora, parser_of, questions
from langchain_core.documents import Document

from crag.finding import FindBy
from crag.papers.experiments.report import table

PLACES = (3, 5, 10)
Places = dict[FindBy, dict[str, int | None]]
"""The place of the evidence, from 1, by way of finding and question; None if it is not found."""


def main() -> None:
    """Index, retrieve, print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this folder")
    given = parser.parse_args()
    asked = [one for one in questions(given.docs, given.only) if one.answerable]
    places: Places = {way: {} for way in get_args(FindBy)}
    seconds = dict.fromkeys(places, 0.0)
    for index, rows in indexed_corpora(given.docs, asked, given.keep):
        print(f"{rows[0].corpus}: {index.count()} chunks")
        index.search("a first question opens the index")
        for way, one in product(places, rows):
            started = time.process_time()
            found = index.search(one.question, max(PLACES), by=way)
            seconds[way] += time.process_time() - started
            places[way][one.id] = found_at(found, one)
    print(shares(asked, places))
    for way, spent in seconds.items():
        print(f"{way}: {1000 * spent / len(asked):.1f} ms of processor time for each question")
    if given.details:
        for one in asked:
            print(
                one.id, one.kind, *(places[way][one.id] for way in places), one.question, sep=" | "
            )


def found_at(documents: Sequence[Document], question: Asked) -> int | None:
    """Return the place, from 1, of the first document that holds the evidence; None for none."""
    held = (
        number
        for number, document in enumerate(documents, 1)
        if holds_evidence(document.page_content, question)
    )
    return next(held, None)


def shares(asked: Sequence[Asked], places: Places) -> str:
    """Return a Markdown table: the share of questions whose evidence is found, by corpus."""
    rows = []
    for corpus, way in product([*dict.fromkeys(one.corpus for one in asked), "all"], places):
        found = [places[way][one.id] for one in asked if corpus in {one.corpus, "all"}]
        first = [sum(place is not None and place <= k for place in found) for k in PLACES]
        cells = [f"{count / len(found):.2f}" for count in first]
        rank = sum(1 / place for place in found if place) / len(found)
        rows.append([corpus, str(len(found)), way, *cells, f"{rank:.2f}"])
    return table(("corpus", "questions", "found by", *(f"first {k}" for k in PLACES), "rank"), rows)


if __name__ == "__main__":
    main()
