"""A searcher over local files instead of the web, with BM25, for offline runs."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from crag.errors import DataError
from crag.extras import require
from crag.papers.files import numbered_objects
from crag.parts import Hit, Passage

HOST = "https://corpus.invalid/"
"""The beginning of the address of a hit, which leads nowhere."""
_WORDS = re.compile(r"\w+")


class CorpusSearcher:
    """Search JSONL files of `title` and `text`, or of questions with their `documents`.

    A hit contains the whole text, so no page is read. Duplicate texts are dropped.

    Raises:
        DataError: a file cannot be read, or has no texts.
        MissingPackageError: bm25s is not installed.
    """

    longest_query: int = 1000

    def __init__(self, paths: Sequence[Path]) -> None:
        require("train", "searching files", "bm25s")
        import bm25s

        self._paths = list(paths)
        self._texts = list(dict.fromkeys(text for path in paths for text in read_texts(path)))
        self._index = bm25s.BM25()
        words = [_words(f"{one.title} {one.text}") for one in self._texts]
        self._index.index(words, show_progress=False)

    def __repr__(self) -> str:
        return "BM25 over " + " and ".join(path.name for path in self._paths)

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` texts that share a word with the query, best first."""
        words = _words(query)
        scores = self._index.get_scores(words) if words else []
        order = sorted(range(len(scores)), key=lambda place: -scores[place])[:limit]
        found = [(place, self._texts[place]) for place in order if scores[place] > 0]
        return [Hit(one.title, f"{HOST}{place}", one.text[:200], one.text) for place, one in found]


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
