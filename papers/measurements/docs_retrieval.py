"""Measure how early retrieval finds the evidence of the questions over real documentation.

    python papers/measurements/docs_retrieval.py DOCS [--only NAME…] [--keep FOLDER] [--details]

DOCS is a folder with corpus/NAME/… and questions.jsonl. Every corpus is indexed as `crag index`
does it, and the first ten chunks are retrieved for each question that has evidence, by meaning, by
words, and by both; FOLDER keeps the indexes, so that the next run embeds only what changed. A chunk
holds the evidence of a question if one of the excerpts stands in it. Texts are compared as in
docs_questions.py.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple, get_args

from docs_questions import normal
from langchain_core.documents import Document

from crag.models.encoder import packaged_encoder
from crag.retrieval import DocumentIndex, index_paths
from crag.settings import FindBy

PLACES = (3, 5, 10)
Places = dict[FindBy, dict[str, int | None]]
"""The place of the evidence, from 1, by way of finding and question; None if it is not found."""


class Question(NamedTuple):
    """One question, with the excerpts that answer it; unanswerable questions have none."""

    id: str
    corpus: str
    question: str
    evidence: tuple[str, ...]
    kind: str


def main() -> None:
    """Index, retrieve, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("docs", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="corpora to take")
    parser.add_argument("--keep", type=Path, help="keep the indexes in this folder")
    parser.add_argument("--details", action="store_true", help="print each question's place")
    given = parser.parse_args()
    asked = [one for one in questions(given.docs) if not given.only or one.corpus in given.only]
    places: Places = {way: {} for way in get_args(FindBy)}
    seconds = dict.fromkeys(places, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        for corpus in dict.fromkeys(one.corpus for one in asked):
            place = (given.keep or Path(folder)) / corpus
            with DocumentIndex(place, packaged_encoder()) as index:
                report = index_paths([given.docs / "corpus" / corpus], index)
                print(f"{corpus}: {index.count()} chunks, {len(report.skipped)} files skipped")
                index.search("a first question opens the index")
                for way, one in product(places, asked):
                    if one.corpus == corpus:
                        started = time.process_time()
                        found = index.search(one.question, max(PLACES), by=way)
                        seconds[way] += time.process_time() - started
                        places[way][one.id] = found_at(found, one)
    print(table(asked, places))
    for way, spent in seconds.items():
        print(f"{way}: {1000 * spent / len(asked):.1f} ms of processor time for each question")
    if given.details:
        for one in asked:
            print(
                one.id, one.kind, *(places[way][one.id] for way in places), one.question, sep=" | "
            )


def questions(docs: Path) -> list[Question]:
    """Read the answerable questions."""
    lines = (docs / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["evidence"]]
    return [
        Question(row["id"], row["corpus"], row["question"], tuple(row["evidence"]), row["kind"])
        for row in rows
    ]


def found_at(documents: Sequence[Document], question: Question) -> int | None:
    """Return the place, from 1, of the first document that holds the evidence; None for none."""
    wanted = [normal(excerpt) for excerpt in question.evidence]
    texts = (normal(document.page_content) for document in documents)
    held = (number for number, text in enumerate(texts, 1) if any(one in text for one in wanted))
    return next(held, None)


def table(asked: Sequence[Question], places: Places) -> str:
    """Return a Markdown table: the share of questions whose evidence is found, by corpus."""
    lines = [
        f"| corpus | questions | found by | {' | '.join(f'first {k}' for k in PLACES)} | rank |",
        "|---" * (len(PLACES) + 4) + "|",
    ]
    for corpus, way in product([*dict.fromkeys(one.corpus for one in asked), "all"], places):
        found = [places[way][one.id] for one in asked if corpus in {one.corpus, "all"}]
        shares = [sum(place is not None and place <= k for place in found) for k in PLACES]
        cells = [f"{share / len(found):.2f}" for share in shares]
        rank = sum(1 / place for place in found if place) / len(found)
        lines.append(f"| {corpus} | {len(found)} | {way} | {' | '.join(cells)} | {rank:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
