"""A searcher over local files instead of the web, with BM25, for offline runs."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from crag.errors import DataError
from crag.extras import require
from crag.papers.loading.records import numbered_objects
from crag.parts import Hit, Passage

HOST = "https://corpus.invalid/"
"""The beginning of the address of a hit, which leads nowhere."""
_WORDS = re.compile(r"\w+")


class CorpusSearcher:
    """Search JSONL files of `title` and `text`, or of questions with their `documents`.

    A hit contains the whole text, so no page is read. Duplicate texts are dropped. Files are read
    at the first search, or when `load` is called.
    """

    longest_query: int = 1000

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)

    def __repr__(self) -> str:
        return "BM25 over " + " and ".join(path.name for path in self._paths)

    def load(self) -> None:
        """Index the texts now.

        Raises:
            DataError: a file cannot be read, or has no texts.
            MissingPackageError: bm25s is not installed.
        """
        self._indexed  # noqa: B018 - reading it is what indexes

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` texts that share a word with the query, best first."""
        texts, index = self._indexed
        words = _words(query)
        if not words or not texts:
            return []
        scores = index.get_scores(words)
        order = sorted(range(len(texts)), key=lambda place: -scores[place])[:limit]
        return [
            Hit(texts[place].title, f"{HOST}{place}", texts[place].text[:200], texts[place].text)
            for place in order
            if scores[place] > 0
        ]

    @cached_property
    def _indexed(self) -> tuple[list[Passage], Any]:
        require("train", "searching files", "bm25s")
        import bm25s

        texts = list(dict.fromkeys(text for path in self._paths for text in read_texts(path)))
        index = bm25s.BM25()
        index.index([_words(f"{one.title} {one.text}") for one in texts], show_progress=False)
        return texts, index


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def read_texts(path: Path) -> Iterator[Passage]:
    """Yield the texts of a JSONL file: `title` and `text`, or questions with their `documents`.

    Raises:
        DataError: it cannot be read, or a line has no text.
    """
    for number, row in numbered_objects(path):
        try:
            for one in row.get("documents") or [row]:
                yield Passage(str(one.get("title", "")), str(one["text"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(path, f"has no text ({error})", number) from None
