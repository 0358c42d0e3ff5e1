"""An inverted index in one SQLite file, for back ends without one of their own.

It is derived from what the back end stores, and says which state of it: a `mark` that is committed
together with the words. Where the two marks differ, a process was killed between two writes or
another program wrote; `follow` then compares the ids and makes up for the difference.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from math import log
from pathlib import Path
from typing import Any, NamedTuple, Self

from langchain_core.documents import Document

from crag.documents.sources import digest
from crag.errors import DocumentIndexError
from crag.index.contract import Filter
from crag.text.words import VERSION, question_words, words

_PAGE = 1000
TOKENIZER = """ "ascii tokenchars '-_.:/@+#$'" """
"""Takes each of `crag.text.words` as one token."""
_TABLES = """
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT, kind TEXT, modified TEXT
);
CREATE INDEX sources ON chunks (source, modified);
CREATE VIRTUAL TABLE words USING fts5 (
    heading, text, tokenize = {tokenizer}
);
CREATE TABLE state (mark TEXT NOT NULL);
INSERT INTO state VALUES ('');
"""
_FIND = """
SELECT chunks.id, -bm25(words, 1.0, 1.0) AS score FROM words
JOIN chunks ON chunks.number = words.rowid
WHERE words MATCH ? AND {condition} ORDER BY score DESC, chunks.id LIMIT ?
"""
_HIGHEST = 2.2
"""Most that a word adds to a score, times its rarity: k1 + 1."""


class Change(NamedTuple):
    """One write to a back end."""

    added: Sequence[Document] = ()
    removed: Sequence[str] = ()
    """Ids."""
    amended: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Ids, with the metadata that changed."""


class WordFile:
    """Words of chunks in the SQLite file `path`, ranked by BM25 (k1 1.2, b 0.75); thread-safe.

    Without a path they are kept in memory. A file of another version of the words is emptied.
    """

    def __init__(self, path: Path | None, location: str, *, mode: str = "rwc") -> None:
        self._location, self._place = location, path or "memory"
        self._lock = threading.RLock()
        address = f"{path.resolve().as_uri()}?mode={mode}" if path else ":memory:"
        with self._errors():
            self._database = sqlite3.connect(
                address, timeout=30, isolation_level=None, check_same_thread=False, uri=True
            )
            try:
                self._database.execute("PRAGMA case_sensitive_like = ON")
                if self._database.execute("PRAGMA user_version").fetchone() != (VERSION,):
                    self._make()
            except sqlite3.Error:
                self._database.close()
                raise

    @classmethod
    def existing(cls, path: Path, location: str) -> Self | None:
        """Open a file for reading alone; None if there is none, or none that is complete."""
        try:
            return cls(path, location, mode="ro")
        except DocumentIndexError:
            return None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @property
    def mark(self) -> str:
        """The state of the back end that the words are of; empty at first."""
        with self._lock, self._errors():
            return str(self._database.execute("SELECT mark FROM state").fetchone()[0])

    def write(self, mark: str, change: Change) -> None:
        """Write a change and the mark in one transaction."""
        with self._transaction() as database:
            self._remove(database, [*change.removed, *(str(chunk.id) for chunk in change.added)])
            for chunk in change.added:
                self._add(database, chunk)
            for identifier, changes in change.amended:
                if "modified" in changes:
                    row = (changes["modified"], identifier)
                    database.execute("UPDATE chunks SET modified = ? WHERE id = ?", row)
            database.execute("UPDATE state SET mark = ?", (mark,))

    def follow(
        self,
        mark: str,
        stored: Iterable[tuple[str, Mapping[str, Any]]],
        get: Callable[[Sequence[str]], list[Document]],
    ) -> None:
        """Make up for all differences from what is `stored`, unless the words are of that `mark`.

        `get` returns chunks by id. The mark is written last, so that a process killed in between
        starts over.
        """
        if self.mark == mark:
            return
        with self._lock, self._errors():
            known = dict(self._database.execute("SELECT id, modified FROM chunks"))
        missing, amended = [], []
        for identifier, metadata in stored:
            if identifier not in known:
                missing.append(identifier)
            elif known.pop(identifier) != metadata.get("modified"):
                amended.append((identifier, {"modified": metadata.get("modified")}))
        for start in range(0, len(missing), _PAGE):
            self.write("", Change(added=get(missing[start : start + _PAGE])))
        self.write(mark, Change(removed=list(known), amended=amended))

    def find(self, question: str, k: int, where: Filter) -> list[str]:
        """Return the ids of the `k` best chunks, best first.

        Ranking takes a microsecond for each chunk, and common words are in nearly all. So those
        with the rarest words come first; where the `k`-th of them scores more than all other words
        together can add, chunks that have only those need no ranking (MaxScore, Turtle and Flood
        1995). The result is that of ranking all.
        """
        with self._lock, self._errors():
            found_in = ((self._holding(word), word) for word in question_words(question))
            counted = sorted((n, word) for n, word in found_in if n)
            names = [f'"{word}"' for _, word in counted]
            reach = list(accumulate((n for n, _ in counted), initial=0))
            left = self._most_added([n for n, _ in counted])
            rare = next((place for place, n in enumerate(reach) if n >= k), len(names))

            def needed(scores: Mapping[str, float]) -> int:
                """Return how many words there are of which a chunk must have one."""
                least = sorted(scores.values())[-k] if len(scores) >= k else 0.0
                return next(place for place in range(rare, len(names) + 1) if left[place] <= least)

            scores = self._ranked(names[:rare], k, where)
            while len(scores) < k and rare < len(names):
                more = 4 * reach[rare]  # Few rankings, whose time the last one decides.
                rare = next((place for place, n in enumerate(reach) if n >= more), len(names))
                scores = self._ranked(names[:rare], k, where)
            if (most := needed(scores)) > rare:  # Scores nearer to the whole ones may need fewer.
                scores |= self._ranked(names[:rare], k, where, with_any=names[rare:most])
                most = needed(scores)
            if most > rare:
                if 2 * reach[most] > reach[-1]:  # One ranking of all is cheaper than two of most.
                    most = len(names)
                scores = self._ranked(names[:most], k, where)
            if most < len(names):
                scores |= self._ranked(names[:most], k, where, with_any=names[most:])
        return sorted(scores, key=lambda one: (-scores[one], one))[:k]

    def _holding(self, word: str) -> int:
        """Return how many chunks have a word."""
        query = "SELECT count(*) FROM words WHERE words MATCH ?"
        return int(self._database.execute(query, (f'"{word}"',)).fetchone()[0])

    def _most_added(self, counts: Sequence[int]) -> list[float]:
        """Return the most that the words from each place on, up to none, add to a score."""
        total = self._database.execute("SELECT max(number) FROM chunks").fetchone()[0] or 0
        rarities = (max(log((total - n + 0.5) / (n + 0.5)), 1e-6) for n in reversed(counts))
        return [*accumulate((_HIGHEST * one for one in rarities), initial=0.0)][::-1]

    def _ranked(
        self, names: Sequence[str], k: int, where: Filter, with_any: Sequence[str] = ()
    ) -> dict[str, float]:
        """Return ids and scores of the best chunks that have one of the words, and of others.

        A score is the higher the more words are asked for, as all that a chunk has count.
        """
        match = " AND ".join(f"({' OR '.join(some)})" for some in (names, with_any) if some)
        condition, values = _condition_of(where)
        query = _FIND.format(condition=condition)
        return dict(self._database.execute(query, (match, *values, k))) if match else {}

    def sources(self, where: Filter) -> list[str]:
        """Return the sources that pass the filter."""
        return self._passing("DISTINCT source", where)

    def ids(self, where: Filter) -> list[str]:
        """Return the ids of the chunks that pass the filter."""
        return self._passing("id", where)

    def _passing(self, column: str, where: Filter) -> list[str]:
        condition, values = _condition_of(where)
        query = f"SELECT {column} FROM chunks WHERE {condition}"  # noqa: S608 - of constants
        with self._lock, self._errors():
            return [row[0] for row in self._database.execute(query, values)]

    def _make(self) -> None:
        with self._transaction() as database:
            for table in ("words", "chunks", "state"):
                database.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in _TABLES.format(tokenizer=TOKENIZER).split(";\n"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {VERSION}")

    def _add(self, database: sqlite3.Connection, chunk: Document) -> None:
        known = chunk.metadata
        row = (str(chunk.id), known.get("source"), known.get("kind"), known.get("modified"))
        added = database.execute(
            "INSERT INTO chunks (id, source, kind, modified) VALUES (?, ?, ?, ?)", row
        )
        heading = f"{known.get('title') or ''} {known.get('section') or ''}"
        texts = (" ".join(words(text)) for text in (heading, chunk.page_content))
        database.execute(
            "INSERT INTO words (rowid, heading, text) VALUES (?, ?, ?)", (added.lastrowid, *texts)
        )

    def _remove(self, database: sqlite3.Connection, ids: Iterable[str]) -> None:
        for identifier in ids:
            query = "DELETE FROM chunks WHERE id = ? RETURNING number"
            for (number,) in database.execute(query, (identifier,)).fetchall():
                database.execute("DELETE FROM words WHERE rowid = ?", (number,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors(), committed(self._database):
            yield self._database

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            problem = (
                f"its words in {self._place} cannot be read or written: {error}. "
                "If the file is damaged, delete it: it is made again"
            )
            raise DocumentIndexError(self._location, problem) from error


def cached_words(location: str) -> Path:
    """Return the file for the words of a server, in the folder of the user's cache.

    Raises:
        DocumentIndexError: the folder cannot be made.
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "crag"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"its words cannot be kept in {folder}: {error.strerror}. Set XDG_CACHE_HOME"
        raise DocumentIndexError(location, problem) from error
    return folder / f"words-{digest(location)[:16]}.sqlite3"


@contextmanager
def committed(database: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block writes, or nothing of it."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _condition_of(where: Filter) -> tuple[str, list[str]]:
    """Return a condition on the table of chunks, made of constants, and its parameters."""
    conditions, values = ["1"], list[str]()
    if where.folder:
        patterns = where.patterns()
        conditions.append("(" + " OR ".join([r"source LIKE ? ESCAPE '\'"] * len(patterns)) + ")")
        values += patterns
    for column, comparison, value in where.comparisons():
        conditions.append(f"{column} {comparison} ?")
        values.append(value)
    return " AND ".join(conditions), values
