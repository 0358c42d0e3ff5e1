"""PostgreSQL with pgvector as the index.

The words are those of `crag.text.words`, stored as a tsvector; what has them is ranked by
`crag.index.ranking`.
"""

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from crag.errors import DocumentIndexError
from crag.extras import require
from crag.index.ranking import Term
from crag.index.store import DocumentIndex, Run, Stamp, among, sentence_of, unit
from crag.plain import without_credentials
from crag.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

_REACH = 10
"""How many times more than asked for a graph finds, before exact vectors are compared."""
_LOCK = 0x63726167
"""Key of the lock that a run holds."""
_CONNECT_SECONDS = 10
_ADVICE = (
    "Is PostgreSQL running, and is this its URL? It needs pgvector 0.8 or newer on the server: "
    "have an administrator of the database run CREATE EXTENSION vector"
)
_PATIENCE = "SET LOCAL lock_timeout = '2s'"
"""In which PostgreSQL releases the lock of a connection that was just closed or killed."""
_READING, _WRITING = b"SET statement_timeout = '30s'", b"SET statement_timeout = '1h'"
_OPTIONS = """
SET hnsw.ef_search = 1000;
SET hnsw.iterative_scan = strict_order
"""
_VALUE = re.compile(r":(\w+)")
_TABLES = """
CREATE TABLE crag_index (
    schema integer NOT NULL, embeddings text NOT NULL, dimension integer NOT NULL
);
CREATE TABLE crag_texts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE,
    heading text NOT NULL, text text NOT NULL, words tsvector NOT NULL,
    vector vector(DIMENSION) NOT NULL
);
CREATE TABLE crag_chunks (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE,
    number bigint NOT NULL REFERENCES crag_texts, metadata jsonb NOT NULL,
    source text GENERATED ALWAYS AS (metadata ->> 'source') STORED
);
CREATE INDEX crag_words ON crag_texts USING gin (words);
CREATE INDEX crag_of_text ON crag_chunks (number);
CREATE INDEX crag_sources ON crag_chunks (source text_pattern_ops);
"""
_ADD_TEXT = """
INSERT INTO crag_texts (key, heading, text, words, vector)
VALUES (:key, :heading, :text, CAST(:words AS tsvector), CAST(:vector AS vector))
"""
_BY_VECTOR = """
SELECT number FROM (
    SELECT number, vector <=> CAST(:vector AS vector) AS distance FROM crag_texts
    WHERE {numbers} ORDER BY distance LIMIT :reach
) AS near
ORDER BY round(CAST(distance AS numeric), 6), number LIMIT :k
"""


class Postgres(DocumentIndex):
    """A PostgreSQL database with pgvector 0.8 or newer, at ``postgresql://HOST/DATABASE``.

    The URL takes everything that libpq does; a password can also stand in the environment
    (PGPASSWORD) or in ``~/.pgpass``. Several processes read at once, also while one is writing.
    """

    dialect = {  # noqa: RUF012 - not changed
        "each": "json_array_elements_text(CAST(:values AS json))",
        "matches": "crag_texts WHERE words @@ CAST(:terms AS tsquery)",
        "vector": "CAST(vector AS real[])",
        "new": "CAST(:new AS jsonb)",
    }
    by_words_query = """
        SELECT number FROM {matches} AND {numbers}
        ORDER BY ts_rank('{{1, 1, 1, 1}}', words, CAST(:terms AS tsquery), 1) DESC, number LIMIT :k
    """

    def __init__(self, location: str, embeddings: Embeddings) -> None:
        super().__init__(embeddings)
        require("postgres", "an index in PostgreSQL", "psycopg")
        self._url = location
        self.location = without_credentials(location).partition("?")[0]
        self._connection: Connection[Any] | None = None
        self._lock = threading.RLock()

    def stamp(self) -> Stamp | None:
        """Return what the index was created with."""
        if self.rows("SELECT to_regclass('crag_index')")[0][0] is None:
            return None
        return Stamp(*self.rows("SELECT schema, embeddings, dimension FROM crag_index")[0])

    def create(self, stamp: Stamp) -> None:
        """Create the tables, and the extension where it is missing."""
        with self.transaction(writes=True) as run:
            run("CREATE EXTENSION IF NOT EXISTS vector")
            run(_TABLES.replace("DIMENSION", str(int(stamp.dimension))))
            run(
                "INSERT INTO crag_index VALUES (:schema, :embeddings, :dimension)",
                **stamp._asdict(),
            )

    def by_vector(self, vector: Sequence[float], k: int, folder: str = "") -> list[int]:
        """Return the nearest: of all, or by a graph of pgvector that an administrator has made."""
        import numpy as np

        numbers, values = among(folder)
        asked = json.dumps(unit(np.asarray(vector, np.float32)).tolist())
        query = _BY_VECTOR.replace("{numbers}", numbers)
        rows = self.rows(query, vector=asked, k=k, reach=_REACH * k, **values)
        return [number for (number,) in rows]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold a lock that PostgreSQL releases with the connection, however the process ends."""
        try:
            with self.transaction() as run:
                run(_PATIENCE)
                run(f"SELECT pg_advisory_lock({_LOCK})")
            yield
        finally:
            self.close()

    def add_text(
        self, run: Run, key: str, heading: str, text: str, vector: "NDArray[np.float32]"
    ) -> None:
        """Store a text with its words and its vector."""
        run(
            _ADD_TEXT, key=key, heading=heading, text=text,
            words=_words_of(f"{heading} {text}"), vector=json.dumps(vector.tolist()),
        )  # fmt: skip

    @staticmethod
    def vector_of(stored: Sequence[float]) -> "NDArray[np.float32]":
        """Return a vector from its numbers."""
        import numpy as np

        return np.asarray(stored, np.float32)

    @staticmethod
    def matching(terms: Sequence[Term]) -> str:
        """Return a tsquery."""
        phrases = (" <-> ".join(f"'{word}'" for word in term) for term in terms)
        return " | ".join(f"({phrase})" for phrase in phrases)

    def close(self) -> None:
        """Close the connection; it reopens on use."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._checked = None, False

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Run]:
        """Connect, or reconnect, and give what runs queries; translate errors."""
        import psycopg

        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(
                        self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS
                    )
                    self._connection.execute(_OPTIONS)
                with self._connection.transaction():
                    self._connection.execute(_WRITING if writes else _READING)
                    yield self._run
            except psycopg.errors.LockNotAvailable:
                problem = "another run is writing to it. Wait until it has finished, or stop it"
                raise DocumentIndexError(self.location, problem) from None
            except psycopg.Error as error:
                problem = f"{sentence_of(error)} {_ADVICE}"
                raise DocumentIndexError(self.location, problem) from None

    def _run(self, query: str, **values: Any) -> list[Any]:
        assert self._connection is not None  # noqa: S101 - within a transaction
        written = _VALUE.sub(r"%(\1)s", query.format(**self.dialect))
        cursor = self._connection.execute(written.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


def _words_of(text: str) -> str:
    """Return the words of a text, with their positions, as PostgreSQL reads a tsvector."""
    return " ".join(f"'{word}':{position}" for position, word in enumerate(words(text), start=1))
