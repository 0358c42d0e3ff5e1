"""PostgreSQL with pgvector as the index: vectors, words and metadata in one table.

The words are those of `crag.text.words`, stored as a tsvector. They are ranked in the manner
of BM25: PostgreSQL's `ts_rank` of a single word grows with its occurrences ever more slowly, and is
weighed here by the word's rarity and the length of the chunk.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from crag.errors import DocumentIndexError
from crag.extras import require
from crag.index.contract import EVERYTHING, Filter, Stamp, in_order, safe_location, sentence_of
from crag.text.words import VERSION, question_words, words

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray
    from psycopg import Connection

_LONGEST_GRAPH = 2000
"""Longest vectors for which pgvector builds a graph; longer ones are compared one by one."""
_FEWEST_NEIGHBOURS, _MOST_NEIGHBOURS = 100, 1000
_LAST_POSITION, _MOST_POSITIONS = 16_383, 255
_OLDEST = (0, 8)
_LOCK = 0x63726167
"""Key of the lock that a run holds."""
_CONNECT_SECONDS = 10
_READING, _STATEMENT = "30s", "1h"
"""Longest time for a search, and for any other statement, such as the making of the graph."""
_SEARCH = f"SET LOCAL statement_timeout = '{_READING}'".encode()
_PATIENCE = 2.0
"""Seconds for PostgreSQL to release the lock of a connection that was just closed or killed."""

_TABLES = """
CREATE TABLE crag_index (
    schema integer NOT NULL, embeddings text NOT NULL, dimension integer NOT NULL,
    words integer NOT NULL
);
CREATE TABLE crag_chunks (
    id text PRIMARY KEY, text text NOT NULL, metadata jsonb NOT NULL, words tsvector NOT NULL,
    vector vector({dimension}) NOT NULL
);
CREATE INDEX crag_words ON crag_chunks USING gin (words);
CREATE INDEX crag_sources ON crag_chunks ((metadata ->> 'source') text_pattern_ops);
"""
_GRAPH = "CREATE INDEX crag_vectors ON crag_chunks USING hnsw (vector vector_cosine_ops)"
_ADD = """
INSERT INTO crag_chunks (id, text, metadata, words, vector)
VALUES (%s, %s, %s, %s::tsvector, %s::vector)
ON CONFLICT (id) DO UPDATE SET (text, metadata, words, vector)
    = (excluded.text, excluded.metadata, excluded.words, excluded.vector)
"""
_BY_VECTOR = """
SELECT id FROM crag_chunks WHERE {condition}
ORDER BY vector <=> %(vector)s::vector LIMIT %(k)s
"""
_BY_WORDS = """
WITH total AS (SELECT greatest(count(*), 1) AS n FROM crag_chunks),
asked AS (
    SELECT word, (SELECT count(*) FROM crag_chunks WHERE words @@ word::tsquery) AS holders
    FROM unnest(%(words)s::text[]) AS word
),
rare AS (
    SELECT word::tsquery AS word, ln(1 + (n - holders + 0.5) / (holders + 0.5)) AS rarity
    FROM asked, total WHERE holders > 0
)
SELECT id FROM crag_chunks JOIN LATERAL (
    SELECT sum(rarity * ts_rank('{{1, 1, 1, 1}}', words, word, 1)) AS score
    FROM rare WHERE words @@ word
) AS ranked ON true
WHERE words @@ %(any)s::tsquery AND {condition}
ORDER BY score DESC, id LIMIT %(k)s
"""


class Postgres:
    """A PostgreSQL database with pgvector 0.8 or newer, at ``postgresql://HOST/DATABASE``.

    The URL takes everything that libpq does; a password can also stand in the environment
    (PGPASSWORD) or in ``~/.pgpass``. Several processes read at once, also while one is writing.
    """

    most = 1000

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
        *stamp, version = self._row("SELECT schema, embeddings, dimension, words FROM crag_index")
        if version != VERSION:
            self._refresh_words()
        return Stamp(*stamp)

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
            if stamp.dimension <= _LONGEST_GRAPH:
                connection.execute(_GRAPH)
            row = (*stamp, VERSION)
            connection.execute("INSERT INTO crag_index VALUES (%s, %s, %s, %s)", row)

    def count(self) -> int:
        """Return the number of chunks."""
        return int(self._row("SELECT count(*) FROM crag_chunks")[0])

    def stored(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return the id and the metadata of every chunk."""
        yield from self._rows("SELECT id, metadata FROM crag_chunks", {})

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return chunks by id."""
        query = "SELECT id, text, metadata FROM crag_chunks WHERE id = ANY(%(ids)s)"
        return in_order(ids, map(_chunk, self._rows(query, {"ids": list(ids)})))

    def by_vector(self, vector: Sequence[float], k: int, where: Filter = EVERYTHING) -> list[str]:
        """Return the ids of the nearest; the graph is searched on until enough pass the filter."""
        condition, values = _condition(where)
        breadth = min(max(k, _FEWEST_NEIGHBOURS), _MOST_NEIGHBOURS)
        with self._transaction() as connection:
            connection.execute(_SEARCH)
            connection.execute(b"SET LOCAL hnsw.ef_search = %d" % breadth)
            connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
            values |= {"vector": _literal(vector), "k": k}
            nearest = _BY_VECTOR.format(condition=condition).encode()
            rows = connection.execute(nearest, values).fetchall()
        return [row[0] for row in rows]

    def by_words(self, question: str, k: int, where: Filter = EVERYTHING) -> list[str]:
        """Return the ids of the chunks that share the rarest words."""
        asked = [f"'{word}'" for word in question_words(question)]
        if not asked:
            return []
        condition, values = _condition(where)
        values |= {"words": asked, "any": " | ".join(asked), "k": k}
        with self._transaction() as connection:
            connection.execute(_SEARCH)
            found = connection.execute(_BY_WORDS.format(condition=condition).encode(), values)
            return [row[0] for row in found.fetchall()]

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

    def add(self, chunks: Sequence[Document], vectors: "NDArray[np.float32]") -> None:
        """Store chunks in one transaction."""
        from psycopg.types.json import Jsonb

        rows = [
            (
                chunk.id,
                chunk.page_content,
                Jsonb(chunk.metadata),
                _words_of(chunk),
                _literal(vector),
            )
            for chunk, vector in zip(chunks, vectors.tolist(), strict=True)
        ]
        with self._transaction() as connection:
            connection.cursor().executemany(_ADD, rows)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove chunks in one transaction."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM crag_chunks WHERE id = ANY(%s)", (list(ids),))

    def amend(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Change metadata in one transaction."""
        from psycopg.types.json import Jsonb

        query = "UPDATE crag_chunks SET metadata = metadata || %s WHERE id = %s"
        rows = [(Jsonb(dict(change)), identifier) for identifier, change in changes]
        with self._transaction() as connection:
            connection.cursor().executemany(query, rows)

    def close(self) -> None:
        """Close the connection; it reopens on use."""
        with self._lock:
            if self._open_connection is not None:
                self._open_connection.close()
            self._open_connection = None

    def _refresh_words(self) -> None:
        """Make the words of all chunks again, after their rules have changed."""
        with self._transaction() as connection:
            query = "SELECT id, text, metadata FROM crag_chunks"
            chunks = map(_chunk, connection.execute(query).fetchall())
            connection.cursor().executemany(
                "UPDATE crag_chunks SET words = %s::tsvector WHERE id = %s",
                [(_words_of(chunk), chunk.id) for chunk in chunks],
            )
            connection.execute("UPDATE crag_index SET words = %s", (VERSION,))

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


def _chunk(row: tuple[Any, ...]) -> Document:
    identifier, text, metadata = row
    return Document(text, id=identifier, metadata=metadata)


def _literal(vector: Sequence[float]) -> str:
    return f"[{','.join(repr(float(number)) for number in vector)}]"


def _words_of(chunk: Document) -> str:
    """Return the words of a chunk as the text of a tsvector."""
    known = chunk.metadata
    text = f"{known.get('title') or ''} {known.get('section') or ''} {chunk.page_content}"
    positions: dict[str, list[int]] = {}
    for position, word in enumerate(words(text), start=1):
        positions.setdefault(word, []).append(min(position, _LAST_POSITION))
    return " ".join(
        f"'{word}':{','.join(map(str, places[:_MOST_POSITIONS]))}"
        for word, places in positions.items()
    )


def _condition(where: Filter) -> tuple[str, dict[str, Any]]:
    """Return a condition, made of constants, and its parameters."""
    conditions, values = ["true"], dict[str, Any]()
    if where.folder:
        conditions.append("metadata ->> 'source' LIKE ANY(%(patterns)s)")
        values["patterns"] = list(where.patterns())
    for number, (key, comparison, value) in enumerate(where.comparisons()):
        conditions.append(f"metadata ->> '{key}' {comparison} %(value{number})s")
        values[f"value{number}"] = value
    return " AND ".join(conditions), values
