"""PostgreSQL with pgvector as the index: texts with vectors and words, and the chunks of them.

The words are those of `crag.text.words`, stored as a tsvector; what has them is ranked by
`crag.index.ranking`.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.extras import require
from crag.index.contract import (
    EVERYTHING,
    MOST_PLACES,
    Change,
    Filter,
    Hit,
    Passage,
    Stamp,
    Term,
    alike,
    heading_of,
    placed,
    safe_location,
    sentence_of,
    text_key,
)  # fmt: skip
from crag.text.words import words

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray
    from psycopg import Connection

_REACH = 10
"""How many times more than asked for a graph finds, before exact vectors are compared."""
_PAGE = 10_000
_LAST_POSITION, _MOST_POSITIONS = 16_383, 255
_OLDEST = (0, 8)
_LOCK = 0x63726167
"""Key of the lock that a run holds."""
_CONNECT_SECONDS = 10
_READING, _STATEMENT = "30s", "1h"
"""Longest time for a search, and for any other statement."""
_SEARCH = f"SET LOCAL statement_timeout = '{_READING}'".encode()
_PATIENCE = 2.0
"""Seconds for PostgreSQL to release the lock of a connection that was just closed or killed."""

_TABLES = """
CREATE TABLE crag_index (
    schema integer NOT NULL, embeddings text NOT NULL, dimension integer NOT NULL
);
CREATE TABLE crag_texts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE,
    heading text NOT NULL, text text NOT NULL, alike bigint NOT NULL, words tsvector NOT NULL,
    vector vector({dimension}) NOT NULL
);
CREATE TABLE crag_chunks (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE,
    number bigint NOT NULL REFERENCES crag_texts, metadata jsonb NOT NULL
);
CREATE INDEX crag_words ON crag_texts USING gin (words);
CREATE INDEX crag_of_text ON crag_chunks (number);
CREATE INDEX crag_sources ON crag_chunks ((metadata ->> 'source') text_pattern_ops);
"""
_ADD_TEXTS = """
INSERT INTO crag_texts (key, heading, text, alike, words, vector)
VALUES (%s, %s, %s, %s, %s::tsvector, %s::vector) ON CONFLICT (key) DO NOTHING
"""
_ADD_CHUNKS = """
INSERT INTO crag_chunks (id, number, metadata)
SELECT %s, number, %s FROM crag_texts WHERE key = %s
"""
_AMEND = "UPDATE crag_chunks SET metadata = metadata || %s WHERE id = %s"
_REMOVE = """
WITH gone AS (DELETE FROM crag_chunks WHERE id = ANY(%s) RETURNING number)
SELECT DISTINCT number FROM gone
"""
_REMOVE_TEXTS = """
DELETE FROM crag_texts WHERE number = ANY(%s)
AND NOT EXISTS (SELECT 1 FROM crag_chunks WHERE crag_chunks.number = crag_texts.number)
"""
_BY_VECTOR = """
SELECT number, alike FROM (
    SELECT number, alike, vector <=> %(vector)s::vector AS distance FROM crag_texts
    WHERE {condition} ORDER BY distance LIMIT %(reach)s
) AS near
ORDER BY round(distance::numeric, 6), number LIMIT %(k)s
"""
_BY_WORDS = """
SELECT number, alike FROM crag_texts WHERE words @@ %(any)s::tsquery AND {condition}
ORDER BY ts_rank('{{1, 1, 1, 1}}', words, %(any)s::tsquery, 1) DESC, number LIMIT %(k)s
"""
_DOCUMENTS = """
SELECT id, text, metadata FROM crag_chunks JOIN crag_texts USING (number)
WHERE number = %(number)s ORDER BY NOT ({condition}), place LIMIT %(most)s
"""


class Postgres:
    """A PostgreSQL database with pgvector 0.8 or newer, at ``postgresql://HOST/DATABASE``.

    The URL takes everything that libpq does; a password can also stand in the environment
    (PGPASSWORD) or in ``~/.pgpass``. Several processes read at once, also while one is writing.
    """

    def __init__(self, location: str) -> None:
        require("postgres", "an index in PostgreSQL", "psycopg")
        self._url = location
        self.location = safe_location(location)
        self._open_connection: Connection[Any] | None = None
        self._lock = threading.RLock()

    def stamp(self) -> Stamp | None:
        """Return what the index was created with."""
        if self._row("SELECT to_regclass('crag_index')")[0] is None:
            return None
        return Stamp(*self._row("SELECT schema, embeddings, dimension FROM crag_index"))

    def create(self, stamp: Stamp) -> None:
        """Create the tables, and the extension where it is missing."""
        with self._transaction() as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            query = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
            ((version,),) = connection.execute(query).fetchall()
            if tuple(map(int, version.split(".")[:2])) < _OLDEST:
                problem = f"it has pgvector {version}; 0.8 or newer is needed"
                raise DocumentIndexError(self.location, problem)
            for statement in _TABLES.format(dimension=int(stamp.dimension)).split(";\n"):
                if statement.strip():
                    connection.execute(statement.encode())
            connection.execute("INSERT INTO crag_index VALUES (%s, %s, %s)", stamp)

    def count(self) -> int:
        """Return the number of chunks."""
        return int(self._row("SELECT count(*) FROM crag_chunks")[0])

    def stored(self, where: Filter = EVERYTHING) -> Iterator[Document]:
        """Return chunks, a page at a time."""
        condition, values = _condition(where)
        query = f"""
            SELECT id, text, metadata, place FROM crag_chunks JOIN crag_texts USING (number)
            WHERE place > %(last)s AND {condition} ORDER BY place LIMIT {_PAGE}
        """  # noqa: S608 - of constants
        last = 0
        while rows := self._rows(query, values | {"last": last}):
            last = rows[-1][3]
            yield from map(_chunk, rows)

    def vectors(self, keys: Sequence[str]) -> "Mapping[str, NDArray[np.float32]]":
        """Return the vectors of texts by key."""
        import numpy as np

        query = "SELECT key, vector::text FROM crag_texts WHERE key = ANY(%(keys)s)"
        rows = self._rows(query, {"keys": list(keys)})
        return {key: np.fromstring(vector[1:-1], np.float32, sep=",") for key, vector in rows}

    def by_vector(self, vector: Sequence[float], k: int, where: Filter = EVERYTHING) -> list[Hit]:
        """Return the nearest: of all, or by a graph of pgvector that an administrator has made."""
        condition, values = _among(where)
        values |= {"vector": _literal(vector), "k": k, "reach": _REACH * k}
        with self._transaction() as connection:
            connection.execute(_SEARCH)
            connection.execute("SET LOCAL hnsw.ef_search = 1000")
            connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
            nearest = _BY_VECTOR.format(condition=condition).encode()
            return [Hit(*row) for row in connection.execute(nearest, values).fetchall()]

    def by_words(self, terms: Sequence[Term], k: int, where: Filter = EVERYTHING) -> list[Hit]:
        """Return the texts that have most of the terms, rare ones most."""
        if not terms:
            return []
        condition, values = _among(where)
        values |= {"any": " | ".join(f"({_quoted(term)})" for term in terms), "k": k}
        with self._transaction() as connection:
            connection.execute(_SEARCH)
            found = connection.execute(_BY_WORDS.format(condition=condition).encode(), values)
            return [Hit(*row) for row in found.fetchall()]

    def holders(self, terms: Sequence[Term]) -> tuple[int, list[int]]:
        """Return the number of texts, and how many have each of the terms."""
        query = "SELECT count(*) FROM crag_texts WHERE words @@ %(term)s::tsquery"
        counts = [self._rows(query, {"term": _quoted(term)})[0][0] for term in terms]
        return int(self._row("SELECT count(*) FROM crag_texts")[0]), counts

    def passages(self, numbers: Sequence[int], vector: Sequence[float]) -> list[Passage]:
        """Return texts by number."""
        cosine = "1 - (vector <=> %(vector)s::vector)" if len(vector) else "0"
        query = f"""
            SELECT number, heading, text, alike, round(({cosine})::numeric, 6)::float8
            FROM crag_texts WHERE number = ANY(%(numbers)s)
        """  # noqa: S608 - of constants
        values = {"numbers": list(numbers), "vector": _literal(vector)}
        return [Passage(*row) for row in self._rows(query, values)]

    def documents(self, numbers: Sequence[int], where: Filter = EVERYTHING) -> list[Document]:
        """Return a chunk for each text, of those that pass the one stored first."""
        condition, values = _condition(where)
        query = _DOCUMENTS.format(condition=condition)
        values["most"] = MOST_PLACES + 1
        found = (self._rows(query, values | {"number": number}) for number in numbers)
        return [placed(list(map(_chunk, rows))) for rows in found if rows]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold a lock that PostgreSQL releases with the connection, however the process ends."""
        try:
            until = time.monotonic() + _PATIENCE
            while not self._row(f"SELECT pg_try_advisory_lock({_LOCK})")[0]:
                if time.monotonic() > until:
                    problem = "another run is writing to it. Wait until it has finished, or stop it"
                    raise DocumentIndexError(self.location, problem)
                time.sleep(0.05)
            yield
        finally:
            self.close()

    def write(self, change: Change) -> None:
        """Write a change in one transaction."""
        from psycopg.types.json import Jsonb

        texts, chunks = [], []
        for one, vector in zip(change.chunks, change.vectors, strict=True):
            key, heading, text = text_key(one), heading_of(one), one.page_content
            texts.append(
                (key, heading, text, alike(text), _words_of(heading, text), _literal(vector))
            )
            chunks.append((one.id, Jsonb(one.metadata), key))
        replaced = [*change.removed, *(one.id for one in change.chunks)]
        amended = [(Jsonb(dict(new)), identifier) for identifier, new in change.amended]
        with self._transaction() as connection:
            numbers = connection.execute(_REMOVE, (replaced,)).fetchall()
            cursor = connection.cursor()
            cursor.executemany(_ADD_TEXTS, texts)
            cursor.executemany(_ADD_CHUNKS, chunks)
            cursor.executemany(_AMEND, amended)
            connection.execute(_REMOVE_TEXTS, ([number for (number,) in numbers],))

    def close(self) -> None:
        """Close the connection; it reopens on use."""
        with self._lock:
            if self._open_connection is not None:
                self._open_connection.close()
            self._open_connection = None

    def _row(self, query: str) -> tuple[Any, ...]:
        return self._rows(query, {})[0]

    def _rows(self, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._transaction() as connection:
            return connection.execute(query.encode(), values).fetchall()

    @contextmanager
    def _transaction(self) -> "Iterator[Connection[Any]]":
        """Connect, or reconnect, and translate errors."""
        import psycopg

        with self._lock:
            try:
                connection = self._open_connection
                if connection is None or connection.closed:
                    connection = psycopg.connect(
                        self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS
                    )
                    self._open_connection = connection
                    connection.execute(f"SET statement_timeout = '{_STATEMENT}'".encode())
                with connection.transaction():
                    yield connection
            except psycopg.Error as error:
                raise DocumentIndexError(self.location, _advised(error)) from None


def _advised(error: "psycopg.Error") -> str:
    said = sentence_of(error)
    if "extension" not in said or "vector" not in said:
        return f"{said} Is PostgreSQL running, and is this its URL?"
    if "permission" in said:
        return f"{said} Have an administrator of the database run: CREATE EXTENSION vector"
    return f"{said} Install pgvector on the server: https://github.com/pgvector/pgvector"


def _chunk(row: Sequence[Any]) -> Document:
    return Document(row[1], id=row[0], metadata=row[2])


def _literal(vector: Sequence[float]) -> str:
    return f"[{','.join(repr(float(number)) for number in vector)}]"


def _quoted(term: Term) -> str:
    return " <-> ".join(f"'{word}'" for word in term)


def _words_of(heading: str, text: str) -> str:
    """Return the words of a text as those of a tsvector."""
    positions: dict[str, list[int]] = {}
    for position, word in enumerate(words(f"{heading} {text}"), start=1):
        positions.setdefault(word, []).append(min(position, _LAST_POSITION))
    return " ".join(
        f"'{word}':{','.join(map(str, places[:_MOST_POSITIONS]))}"
        for word, places in positions.items()
    )


def _among(where: Filter) -> tuple[str, dict[str, Any]]:
    """Return a condition on the table of texts."""
    condition, values = _condition(where)
    if where == EVERYTHING:
        return condition, values
    return f"number IN (SELECT number FROM crag_chunks WHERE {condition})", values  # noqa: S608 - of constants


def _condition(where: Filter) -> tuple[str, dict[str, Any]]:
    """Return a condition on the table of chunks, made of constants, and its parameters."""
    conditions, values = ["true"], dict[str, Any]()
    if where.folder:
        conditions.append("metadata ->> 'source' LIKE ANY(%(patterns)s)")
        values["patterns"] = list(where.patterns())
    for number, (key, comparison, value) in enumerate(where.comparisons()):
        conditions.append(f"metadata ->> '{key}' {comparison} %(value{number})s")
        values[f"value{number}"] = value
    return " AND ".join(conditions), values
