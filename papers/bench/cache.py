"""A cache on disk for models, searchers and evaluators, so no call is paid for twice.

The cache of chat models implements LangChain's interface, so it works with any chat model. API keys
never enter it: LangChain identifies a model by its settings without secrets.
"""

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import AIMessage, messages_from_dict, messages_to_dict
from langchain_core.outputs import ChatGeneration, Generation

from crag.correction.scoring import LOWEST
from crag.errors import DataError
from crag.papers.bench.budget import Meter
from crag.papers.bench.tally import current_tally, reserve
from crag.parts import Evaluator, Hit, Passage, ReadingEvaluator, WebSearcher, is_reading
from crag.reading import Reading
from crag.runtime.evaluator_calls import as_many
from crag.state import Thresholds
from crag.text.language import languages_of

Text = TypeVar("Text", str, Passage)
Judged = TypeVar("Judged", float, Reading)
_PATIENCE = 60.0
"""Seconds to wait for another process that writes."""


class Cache:
    """Texts by kind and key in one SQLite file, or in memory; threads and processes share it.

    Raises:
        DataError: the file is not a cache.
    """

    def __init__(self, path: Path | None = None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(
                path or ":memory:", timeout=_PATIENCE, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            raise DataError(path or Path(), f"cannot be used as a cache ({error})") from None
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS entries (kind TEXT, key TEXT, value TEXT, "
                "PRIMARY KEY (kind, key)) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise DataError(path or Path(), f"is not a cache ({error}); use another file") from None

    def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the cached values by key."""
        found: dict[str, str] = {}
        with self._lock:
            for key in keys:
                query = "SELECT value FROM entries WHERE kind = ? AND key = ?"
                for (value,) in self._database.execute(query, (kind, _short(key))):
                    found[key] = value
        return found

    def put(self, kind: str, values: Mapping[str, str]) -> None:
        """Store values; they are on disk when this returns."""
        entries = [(kind, _short(key), value) for key, value in values.items()]
        with self._lock, self._database:
            self._database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", entries)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()


def _short(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class CachedReplies(BaseCache):
    """The cache of a chat model, which also checks the budget: only a miss costs a call.

    Raises:
        BudgetSpentError: on a miss when the budget is spent.
    """

    def __init__(self, cache: Cache | None, meter: Meter) -> None:
        self._cache, self._meter = cache, meter

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the cached reply, or reserve the call that follows."""
        key = _joined(prompt, llm_string)
        value = self._cache.get("reply", [key]).get(key) if self._cache else None
        if value is None:
            reserve(self._meter)
            current_tally().ask({"llm_calls": 1})
            return None
        messages = messages_from_dict(json.loads(value))
        replies = [message for message in messages if isinstance(message, AIMessage)]
        known = {"llm_calls": 1} | _tokens(replies)
        current_tally().save(known)
        current_tally().ask(known)
        return [ChatGeneration(message=message) for message in replies]

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        """Count the tokens of a reply and store it."""
        generations = [one for one in return_val if isinstance(one, ChatGeneration)]
        replies = [one.message for one in generations if isinstance(one.message, AIMessage)]
        self._meter.spend(_tokens(replies))
        current_tally().ask(_tokens(replies))
        if self._cache is not None and replies:
            value = json.dumps(messages_to_dict(replies), ensure_ascii=False, default=str)
            self._cache.put("reply", {_joined(prompt, llm_string): value})

    def clear(self, **_: Any) -> None:
        """Do nothing: to clear a cache of paid calls, delete the file."""


def _joined(*parts: str) -> str:
    return json.dumps(parts, ensure_ascii=False)


def _tokens(replies: Sequence[AIMessage]) -> dict[str, int]:
    counted = [reply.usage_metadata for reply in replies if reply.usage_metadata]
    return {
        "input_tokens": sum(usage["input_tokens"] for usage in counted),
        "output_tokens": sum(usage["output_tokens"] for usage in counted),
    }


class CachedSearcher:
    """A web searcher that caches its hits; failed searches are not cached."""

    def __init__(self, searcher: WebSearcher, cache: Cache, name: str) -> None:
        self._searcher, self._cache, self._name = searcher, cache, name
        self.longest_query = getattr(searcher, "longest_query", 400)

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        return self._known(query, limit) or self._kept(
            query, limit, self._searcher.search(query, limit)
        )

    def _known(self, query: str, limit: int) -> list[Hit]:
        key = _joined(self._name, query, str(limit))
        value = self._cache.get("search", [key]).get(key)
        if value is None:
            return []
        current_tally().save({"searches": 1})
        return [Hit(*fields) for fields in json.loads(value)]

    def _kept(self, query: str, limit: int, hits: list[Hit]) -> list[Hit]:
        if hits:
            key = _joined(self._name, query, str(limit))
            self._cache.put("search", {key: json.dumps(hits, ensure_ascii=False)})
        return hits


class CachedEvaluator:
    """An evaluator that scores each pair of question and text once."""

    def __init__(self, evaluator: Evaluator, cache: Cache, name: str) -> None:
        self._evaluator, self._cache, self._name = evaluator, cache, name

    @property
    def thresholds(self) -> Thresholds:
        """Return the thresholds of the evaluator."""
        return self._evaluator.thresholds

    @property
    def languages(self) -> frozenset[str]:
        """Return the languages that the evaluator reads; empty if unknown."""
        return languages_of(self._evaluator)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order; new texts are scored in one call."""
        keys = {text: _joined(self._name, question, text) for text in texts}
        known = self._known("score", keys, lambda new: self._evaluator.score(question, new))
        return [known[text] for text in texts]

    def _known(
        self, kind: str, keys: Mapping[Text, str], judge: Callable[[list[Text]], Sequence[Judged]]
    ) -> dict[Text, Judged]:
        found = self._cache.get(kind, list(keys.values()))
        known: dict[Text, Judged] = {
            text: json.loads(found[key]) for text, key in keys.items() if key in found
        }
        new = [text for text in keys if text not in known]
        if new:
            judged = dict(zip(new, judge(new), strict=True))
            known |= judged
            # Texts that could not be scored are not cached.
            sound = {
                keys[text]: json.dumps(said)
                for text, said in judged.items()
                if not isinstance(said, float) or isfinite(said)
            }
            self._cache.put(kind, sound)
        return known


class CachedReader(CachedEvaluator):
    """An evaluator that also reads each passage once for a question."""

    def __init__(self, evaluator: ReadingEvaluator, cache: Cache, name: str) -> None:
        super().__init__(evaluator, cache, name)
        self._reader = evaluator

    @property
    def quote_threshold(self) -> float:
        """Return that of the evaluator."""
        return self._reader.quote_threshold

    @property
    def closest_threshold(self) -> float:
        """Return that of the evaluator; -1.0 where it names none."""
        return float(getattr(self._reader, "closest_threshold", LOWEST))

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order; new ones are read in one call."""
        keys = {one: _joined(self._name, question, *one) for one in passages}

        def judge(new: Sequence[Passage]) -> list[Reading]:
            return as_many(self._reader.read(question, new), len(new), "evaluator")

        known: dict[Passage, Reading] = self._known("reading", keys, judge)
        return [deepcopy(known[one]) for one in passages]


def cached(evaluator: Evaluator, cache: Cache, name: str) -> Evaluator:
    """Return an evaluator with a cache; it reads if the other does, so that results stay equal."""
    if is_reading(evaluator):
        return CachedReader(evaluator, cache, name)
    return CachedEvaluator(evaluator, cache, name)
