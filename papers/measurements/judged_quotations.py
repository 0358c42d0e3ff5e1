"""Count quotations over the documentation of packages, as someone who read them judged them.

    python papers/measurements/judged_quotations.py FOLDER [--keep FOLDER] [--show]

FOLDER has the documentation of packages, as ``crag train reader-data papers/recipes/
documentation_packages.json --fetched FOLDER`` keeps it; the reader has learned from its headings.
Each question of `judged_quotations.jsonl` is answered by quotation, without a model and a web, and
what is shown was judged: `right`, in `part`, or `wrong`, such as off the point. A judgement belongs
to the words that were judged; other words count as not judged, and `--show` prints them.
`--keep` keeps the indexes.
"""

import argparse
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from documentation import quoted_at_any_score

from crag.index import DocumentIndex, index_paths
from crag.index.retriever import IndexRetriever
from crag.models.encoder import packaged_encoder
from crag.papers.experiments.report import table
from crag.papers.training.records import read_objects

ROWS = Path(__file__).with_suffix(".jsonl")
VERDICTS = ("right", "part", "wrong", "not judged")
THRESHOLDS = (0.9, 0.83, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.3)


class Quoted(NamedTuple):
    """What is shown for a question, were it sure."""

    question: str
    score: float
    text: str
    verdict: str


def main() -> None:
    """Ask everything, and print how many are right from which score on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", type=Path, help="folder with the packages' documentation")
    parser.add_argument("--keep", type=Path, help="keep indexes in this folder")
    parser.add_argument("--show", action="store_true", help="print what has not been judged")
    given = parser.parse_args()
    rows = list(read_objects(ROWS))
    with tempfile.TemporaryDirectory() as folder:
        found = list(quoted(rows, given.packages, given.keep or Path(folder)))
    lines = [[f"{one:g}", *map(str, counted(found, one))] for one in THRESHOLDS]
    print(table((f"sure from, of {len(found)} questions", *VERDICTS), lines))
    for one in found:
        if given.show and one.verdict == VERDICTS[-1]:
            print(json.dumps({"key": key(one.text), **one._asdict()}, ensure_ascii=False))


def quoted(rows: Sequence[Mapping[str, Any]], packages: Path, keep: Path) -> Iterator[Quoted]:
    """Answer every question by quotation, whatever the score."""
    for package in dict.fromkeys(row["package"] for row in rows):
        with DocumentIndex(keep / package, packaged_encoder()) as index:
            index_paths([packages / package], index)
            for row in (row for row in rows if row["package"] == package):
                score, text = quoted_at_any_score(IndexRetriever(index), row["question"])
                verdict = row["judged"].get(key(text), VERDICTS[-1])
                yield Quoted(row["question"], score, text, verdict)


def key(text: str) -> str:
    """Name the words of a text."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def counted(found: Sequence[Quoted], threshold: float) -> list[int]:
    """Count the verdicts of what is sure from a score on."""
    counts = Counter(one.verdict for one in found if one.score >= threshold)
    return [counts[verdict] for verdict in VERDICTS]


if __name__ == "__main__":
    main()
