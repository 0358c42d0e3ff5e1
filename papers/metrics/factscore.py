"""FActScore for biographies: the share of atomic facts that a source supports (FActScore, Sec. 3).

The published package `factscore` had its last release in 2023 and requires torch 1 and the first
OpenAI client, so it cannot be installed with this project, and the models of its numbers are
retired. This module has its arithmetic, with your own judge or `ChatFactJudge`. Compare
`init_score` with both papers: they used version 0.1.5, without the penalty for short answers.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple

from langchain_core.runnables.config import ContextThreadPoolExecutor

from crag.answering.model_calls import ask
from crag.correction.shortlist import shortlist
from crag.errors import EvaluatorError
from crag.papers.bench.corpus import read_texts
from crag.papers.bench.examples import Example, TaskName
from crag.papers.bench.verdicts import verdict
from crag.papers.metrics.metric import Metric, Row, has_answer
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.text.marks import without_marks
from crag.text.untrusted import neutral

GAMMA = 10
"""Facts below which the penalised score falls (version 0.1.6 and later)."""
PASSAGE_WORDS, PASSAGES = 200, 5
"""Length of the passages of a page, and how many of them the model reads."""
_AT_ONCE = 8
_FACT = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+(\S.*)")
_TASKS: frozenset[TaskName] = frozenset({"biography"})


class FactScore(NamedTuple):
    """The score of one answer."""

    init_score: float
    """The share of facts that are supported."""
    factscore: float
    """The same, times ``exp(1 - 10 / n)`` for fewer than ten facts."""
    facts: int


def factscore(supported: Sequence[bool | None]) -> FactScore | None:
    """Score the facts of one answer; None without any, as the mean excludes abstentions.

    Also None if a fact could not be judged.
    """
    if not supported or None in supported:
        return None
    count = len(supported)
    share = sum(map(bool, supported)) / count
    penalty = math.exp(1 - GAMMA / count) if count < GAMMA else 1.0
    return FactScore(share, share * penalty, count)


Judge = Callable[[str, str], Sequence[bool | None]]
"""Says of each fact of an answer about a topic whether the source supports it."""


def factscore_metrics(judge: Judge | None = None) -> list[Metric]:
    """Return `init_score`, the penalised `factscore` and the number of `facts`, by `judge`.

    Each answer is judged once for all three, without its citations, as in both papers. Without a
    judge they have no values.
    """
    once = None if judge is None else cache(judge)

    def compute(name: str, example: Example, row: Row) -> float | None:
        topic, answer = example.topic, without_marks(str(row["answer"]))
        if once is None or not topic or not answer.strip() or not has_answer(row):
            return None
        found = factscore(once(topic, answer))
        return None if found is None else float(getattr(found, name))

    return [
        Metric(
            name=name, compute=partial(compute, name), tasks=_TASKS, needs="--fact-judge",
            unit="count" if name == "facts" else "share",
        )
        for name in FactScore._fields
    ]  # fmt: skip


class Pages:
    """Texts about topics, from JSONL files of `title` and `text`; rows of one title are one page.

    Only pages about `topics` are kept in memory, so the files can contain a whole encyclopedia.

    Raises:
        DataError: on first use: a file cannot be read or has no such rows.
    """

    def __init__(self, paths: Sequence[Path], topics: Iterable[str]) -> None:
        self._paths = list(paths)
        self._topics = {topic.casefold() for topic in topics}

    def passages(self, topic: str, fact: str) -> list[str]:
        """Return the passages of the topic's page that share most words with a fact."""
        texts = self._by_title.get(topic.casefold(), [])
        chosen = shortlist(fact, texts, PASSAGES, [topic] * len(texts))
        return [texts[place] for place in chosen]

    @cached_property
    def _by_title(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for page in (page for path in self._paths for page in read_texts(path)):
            if (title := page.title.casefold()) in self._topics:
                words = page.text.split()
                starts = range(0, len(words), PASSAGE_WORDS)
                cut = [" ".join(words[start : start + PASSAGE_WORDS]) for start in starts]
                found.setdefault(title, []).extend(cut)
        return found


class ChatFactJudge:
    """Splits an answer into facts with one call, and checks each fact with another.

    The published FActScore does the same with a GPT-3 of 2023 and a dump of Wikipedia: it asks
    about each fact with the passages of the topic's page that share most with it (Sec. 3.2, 4.1).
    Numbers of different models or pages are not comparable.
    """

    def __init__(self, model: ChatModel, pages: Pages, prompts: Prompts = PACKAGED) -> None:
        self._model, self._pages, self._prompts = model, pages, prompts

    def __call__(self, topic: str, answer: str) -> list[bool | None]:
        """Say of each fact whether it is supported; None if that, or any fact, cannot be told."""
        reply = ask(self._model, self._prompts.render("judge_facts", answer=neutral(answer)))
        if reply.problem is not None:
            return [None]
        lines = (_FACT.fullmatch(line) for line in reply.text.splitlines())
        facts = [line[1].strip() for line in lines if line]
        with ContextThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(partial(self._supported, topic), facts))

    def _supported(self, topic: str, fact: str) -> bool | None:
        passages = self._pages.passages(topic, fact)
        if not passages:
            return None
        knowledge = neutral("\n\n".join(passages))
        values = {"topic": neutral(topic), "fact": neutral(fact), "knowledge": knowledge}
        reply = ask(self._model, self._prompts.render("judge_fact", **values))
        try:
            return verdict(reply.text) if reply.problem is None else None
        except EvaluatorError:
            return None
