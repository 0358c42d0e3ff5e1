"""What the evaluator benchmark scores, and what it compares the evaluators with."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bm25s
import numpy as np

from crag.correction.scoring import with_title
from crag.models.encoder import packaged_encoder
from crag.papers.evaluator.pairs import LabelRule, Pair, by_question, label_of
from crag.papers.loading.records import read_objects
from crag.parts import Evaluator, Passage
from crag.runtime.evaluator_calls import scores_of
from crag.state import Action

Scorer = Callable[[Sequence[Pair]], list[float]]
"""Scores all pairs of a set, in their order; the pairs of a question stand together."""


class Labelled(NamedTuple):
    """The pairs of one file, question by question, repeated ones included."""

    pairs: list[Pair]
    actions: dict[str, Action]
    """The ideal action of each question, where the file says it."""
    relations: dict[str, str]
    """What each question asks for, where the file says it."""


def read(path: Path, limit: int | None = None, labels: LabelRule = "auto") -> Labelled:
    """Read pairs or a QA set; `limit` keeps the first questions only."""
    rows = read_objects(path)
    groups = by_question([pair for row in rows for pair in _pairs(row, labels)])
    chosen = list(groups)[:limit]
    return Labelled(
        [pair for question in chosen for pair in groups[question]],
        {row["question"]: row["action"] for row in rows if row.get("action")},
        {row["question"]: row["relation"] for row in rows if row.get("relation")},
    )


def _pairs(row: dict[str, Any], labels: LabelRule) -> Iterator[Pair]:
    for found in row.get("documents", [row]):
        label = label_of(found, row, labels)
        assert label is not None
        yield Pair(row["question"], found["title"], found["text"], label)


def untitled(pairs: Iterable[Pair]) -> list[Pair]:
    """Take the titles away."""
    return [pair._replace(title="") for pair in pairs]


def texts_of(pairs: Iterable[Pair]) -> list[str]:
    """Return each text with its title, as one string."""
    return [with_title(pair.title, pair.text) for pair in pairs]


def scored_by(evaluator: Evaluator) -> Scorer:
    """Score with one call for each question."""

    def scores(pairs: Sequence[Pair]) -> list[float]:
        groups = by_question(pairs).items()
        return [
            score
            for question, group in groups
            for score in scores_of(
                evaluator, question, [Passage(pair.title, pair.text) for pair in group]
            )
        ]

    return scores


def bm25(pairs: Sequence[Pair]) -> list[float]:
    """Score by BM25 with the inverse document frequencies of the set's own texts."""
    texts = list(dict.fromkeys(texts_of(pairs)))
    index = bm25s.BM25()
    index.index(_words(texts), show_progress=False)
    place = {text: number for number, text in enumerate(texts)}
    found: list[float] = []
    for question, group in by_question(pairs).items():
        scores = index.get_scores(_words([question])[0])
        found += [float(scores[place[text]]) for text in texts_of(group)]
    return found


def _words(texts: list[str]) -> list[list[str]]:
    words: list[list[str]] = bm25s.tokenize(
        texts, stopwords="en", return_ids=False, show_progress=False
    )
    return words


def cosines(pairs: Sequence[Pair]) -> list[float]:
    """Score by the cosine of question and whole text, with the packaged encoder."""
    encoder = packaged_encoder()
    found: list[float] = []
    for question, group in by_question(pairs).items():
        vectors = np.asarray(encoder.embed_documents([question, *texts_of(group)]))
        found += (vectors[1:] @ vectors[0]).tolist()
    return found
