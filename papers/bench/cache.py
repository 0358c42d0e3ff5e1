"""A cache on disk for models, searchers and evaluators, so no call is paid for twice.

Chat models have it by LangChain's interface of caches, which identifies a model by its settings
without secrets: API keys never enter it.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import messages_from_dict, messages_to_dict
from langchain_core.outputs import ChatGeneration, Generation

from crag.correction.scoring import LOWEST
from crag.errors import DataError
from crag.parts import Evaluator, Hit, Passage, ReadingEvaluator, WebSearcher, is_reading
from crag.reading import Reading
from crag.runtime.evaluator_calls import as_many

Item = TypeVar("Item", str, Passage)
_PATIENCE = 60.0
"""Seconds to wait for another process that writes."""


class Cache:
    """JSON by key in one SQLite file; threads and processes share it.

    Raises:
        DataError: the file is not a cache.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(
                path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
            )
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value TEXT)"
            )
        except sqlite3.Error as error:
            raise DataError(path, f"cannot be used as a cache ({error})") from None

    def get(self, *key: str) -> Any:
        """Return the value of a key; None if there is none."""
        query = "SELECT value FROM entries WHERE key = ?"
        with self._lock:
            found = self._database.execute(query, [json.dumps(key)]).fetchone()
        return None if found is None else json.loads(found[0])

    def put(self, *key: str, value: Any) -> None:
        """Store a value; it is on disk when this returns."""
        entry = [json.dumps(key), json.dumps(value, ensure_ascii=False, default=str)]
        with self._lock:
            self._database.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", entry)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class CachedReplies(BaseCache):
    """The replies of a chat model."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the cached reply, if there is one."""
        found = self._cache.get("reply", prompt, llm_string)
        if found is None:
            return None
        return [ChatGeneration(message=message) for message in messages_from_dict(found)]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """Store a reply."""
        messages = [one.message for one in return_val if isinstance(one, ChatGeneration)]
        self._cache.put("reply", prompt, llm_string, value=messages_to_dict(messages))

    def clear(self, **_: Any) -> None:
        """Do nothing: to clear a cache of paid calls, delete the file."""


class CachedSearcher:
    """A web searcher that caches its hits; searches that find nothing or fail are not cached."""

    def __init__(self, searcher: WebSearcher, cache: Cache, name: str) -> None:
        self._searcher, self._cache, self._name = searcher, cache, name
        self.longest_query = getattr(searcher, "longest_query", 400)

    def __repr__(self) -> str:
        return repr(self._searcher)

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        key = ("search", self._name, query, str(limit))
        known = self._cache.get(*key)
        if known:
            return [Hit(*fields) for fields in known]
        hits = self._searcher.search(query, limit)
        if hits:
            self._cache.put(*key, value=hits)
        return hits


class CachedEvaluator:
    """An evaluator that scores each pair of question and text once."""

    def __init__(self, evaluator: Evaluator, cache: Cache, name: str) -> None:
        self._evaluator, self._cache, self._name = evaluator, cache, name
        self.thresholds = evaluator.thresholds

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order; new texts are scored in one call."""
        known = self._known("score", question, texts, self._evaluator.score)
        return [known[text] for text in texts]

    def _known(
        self,
        kind: str,
        question: str,
        items: Sequence[Item],
        judge: Callable[[str, list[Item]], Sequence[Any]],
    ) -> Mapping[Item, Any]:
        key = {item: (kind, self._name, question, json.dumps(item)) for item in items}
        known = {item: self._cache.get(*key[item]) for item in key}
        new = [item for item, value in known.items() if value is None]
        for item, value in zip(new, judge(question, new) if new else (), strict=True):
            known[item] = value
            if not isinstance(value, float) or isfinite(value):  # One that failed is asked again.
                self._cache.put(*key[item], value=value)
        return known


class CachedReader(CachedEvaluator):
    """An evaluator that also reads each passage once for a question."""

    def __init__(self, evaluator: ReadingEvaluator, cache: Cache, name: str) -> None:
        super().__init__(evaluator, cache, name)
        self._reader = evaluator
        self.quote_threshold = evaluator.quote_threshold
        self.closest_threshold = float(getattr(evaluator, "closest_threshold", LOWEST))

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order; new ones are read in one call."""

        def judge(question: str, new: list[Passage]) -> list[Reading]:
            return as_many(self._reader.read(question, new), len(new), "evaluator")

        known = self._known("reading", question, passages, judge)
        return [known[one].copy() for one in passages]


def cached(evaluator: Evaluator, cache: Cache, name: str) -> Evaluator:
    """Return an evaluator with a cache; it reads if the other does, so that results stay equal."""
    if is_reading(evaluator):
        return CachedReader(evaluator, cache, name)
    return CachedEvaluator(evaluator, cache, name)
