"""A judge of facts that asks a chat model, with the page about the topic to check against.

The published FActScore does the same with a GPT-3 of 2023 and a dump of Wikipedia: it cuts the
answer into atomic facts, and asks about each with the passages of the topic's page that share most
with it (FActScore, Sec. 3.2 and 4.1). Numbers of different models or pages are not comparable.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from langchain_core.runnables.config import ContextThreadPoolExecutor

from crag.answering.model_calls import ask
from crag.correction.shortlist import shortlist
from crag.errors import EvaluatorError
from crag.papers.bench.corpus import read_texts
from crag.papers.bench.verdicts import verdict
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.text.untrusted import neutral

PASSAGE_WORDS, PASSAGES = 200, 5
"""Length of the passages of a page, and how many of them the model reads."""
_AT_ONCE = 8
_FACT = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+(\S.*)")


class Pages:
    """Texts about topics, from JSONL files of `title` and `text`; rows of one title are one page.

    Only pages about `topics` are kept in memory, so the files can contain a whole encyclopedia.

    Raises:
        DataError: on first use: a file cannot be read or has no such rows.
    """

    def __init__(self, paths: Sequence[Path], topics: Iterable[str]) -> None:
        self._paths = list(paths)
        self._topics = {topic.casefold() for topic in topics}

    def __contains__(self, topic: str) -> bool:
        """Return whether there is a page about a topic."""
        return topic.casefold() in self._by_title

    def passages(self, topic: str, fact: str) -> list[str]:
        """Return the passages of the topic's page that share most words with a fact."""
        texts = self._by_title.get(topic.casefold(), [])
        chosen = shortlist(fact, texts, PASSAGES, [topic] * len(texts))
        return [texts[place] for place in chosen]

    @cached_property
    def _by_title(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self._paths:
            for page in read_texts(path):
                if (title := page.title.casefold()) in self._topics:
                    found.setdefault(title, []).extend(_cut(page.text))
        return found


class ChatFactJudge:
    """Splits answers into facts with one call, and checks each fact with another."""

    def __init__(self, model: ChatModel, pages: Pages, prompts: Prompts = PACKAGED) -> None:
        self._model, self._pages, self._prompts = model, pages, prompts

    def facts(self, answer: str) -> Sequence[str] | None:
        """Return the facts that the model lists, one per line; None if the call fails."""
        reply = ask(self._model, self._prompts.render("judge_facts", answer=neutral(answer)))
        if reply.problem is not None:
            return None
        lines = (_FACT.fullmatch(line) for line in reply.text.splitlines())
        return [line[1].strip() for line in lines if line]

    def supported(self, topic: str, facts: Sequence[str]) -> Sequence[bool | None]:
        """Check each fact, several at a time; None without a page or without a verdict."""
        with ContextThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda fact: self._supported(topic, fact), list(facts)))

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


def _cut(text: str) -> list[str]:
    words = text.split()
    starts = range(0, len(words), PASSAGE_WORDS)
    return [" ".join(words[start : start + PASSAGE_WORDS]) for start in starts]
