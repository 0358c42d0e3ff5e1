"""A searcher over local files instead of the web, with BM25, for offline runs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from crag.errors import DataError
from crag.extras import require
from crag.parts import Hit, Passage

HOST = "https://corpus.invalid/"
"""The beginning of the address of a hit, which leads nowhere."""
_WORDS = re.compile(r"\w+")


class CorpusSearcher:
    """Search JSONL files of `title` and `text`, or of questions with their `documents`.

    A hit contains the whole text, so no page is read. Duplicate texts are dropped. Files are read
    by `load`, or at the first search.
    """

    longest_query: int = 1000

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = list(paths)

    def load(self) -> None:
        """Index the texts now instead of at the first search.

        Raises:
            DataError: a file cannot be read, or has no texts.
            MissingPackageError: bm25s is not installed.
        """
        self._indexed  # noqa: B018 - reading it is what indexes

    def __repr__(self) -> str:
        return "BM25 over " + " and ".join(path.name for path in self._paths)

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` texts that share a word with the query, best first."""
        texts, index = self._indexed
        words = _words(query)
        if not words or not texts:
            return []
        scores = index.get_scores(words)
        order = sorted(range(len(texts)), key=lambda place: -scores[place])[:limit]
        return [_hit(texts[place], place) for place in order if scores[place] > 0]

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


def _hit(text: Passage, place: int) -> Hit:
    return Hit(text.title, f"{HOST}{place}", text.text[:200], text.text)


def read_texts(path: Path) -> Iterator[Passage]:
    """Yield the texts of a JSONL file: `title` and `text`, or questions with their `documents`.

    Raises:
        DataError: it cannot be read, or a line has no text.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield from _texts(path, number, line)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, "cannot be read; give a JSONL file of texts") from error


def _texts(path: Path, number: int, line: str) -> list[Passage]:
    try:
        entry: Any = json.loads(line) if line.strip() else {}
        listed: Sequence[Mapping[str, Any]] = entry.get("documents") or ([entry] if entry else [])
        return [Passage(str(one.get("title", "")), str(one["text"])) for one in listed]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(path, f"has no text ({error})", number) from None
