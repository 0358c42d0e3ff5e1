"""Parts, services and a site that deliver the faults of `tests.graph.faults`, and count them."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic import Field

from crag.errors import EvaluatorError
from crag.parts import Hit, Page, ReadingLimits
from crag.settings import Settings
from crag.testing import FakeChatModel, FakeEvaluator, FakeReader, FakeSearcher
from tests.graph.faults import GENERATOR, Case
from tests.loopback import Loopback
from tests.web.site import HTML, Answer, Website, page

ESSAY = "The question asks for many things at once, so let me think about all of them. " * 4


class Judge(FakeEvaluator):
    """Score documents by the case and web text by what it says; or break the contract."""

    def __init__(self, case: Case) -> None:
        super().__init__({"Lovelace": case.score, "Babbage": case.score, "lighthouse": 0.8})
        self._fault = case.evaluator
        self.failures = 0

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the scores, or deliver the fault."""
        scores = super().score(question, texts)
        fault = self._fault
        if not fault or (fault == "raises_later" and len(self.calls) == 1):
            return scores
        self.failures += 1
        if fault.startswith("raises"):
            raise EvaluatorError("the evaluator lost its weights")
        return scores[1:] if fault == "too_few" else [float("nan")] * len(scores)


class Writer(FakeChatModel):
    """Rewrite and answer, or fail at either; keep count of the failures as events name them."""

    rewriter: str = ""
    generator: str = ""
    failures: Counter[str] = Field(default_factory=Counter)

    def _reply(self, messages: list[BaseMessage]) -> str:
        self.prompts.append(messages)
        answers = "<passages>" in str(messages)
        fault = self.generator if answers else self.rewriter
        if fault:
            self.failures[GENERATOR[fault] if answers else "rewrite_failed"] += 1
        self.refusal = "I cannot help with that." if fault == "refuses" else ""
        match fault:
            case "raises":
                raise ConnectionError("the model is down")
            case "empty" | "refuses":
                return ""
            case "essay":
                return ESSAY
            case "cites_nothing_there":
                return "It was Halloran [1][99]."
        return "It was Halloran [1]." if answers else "designer, Cape Merrow"


class BrokenSearcher(FakeSearcher):
    """Return dictionaries in the place of hits."""

    def search(self, query: str, limit: int) -> list[Any]:
        """Deliver the fault."""
        return [hit._asdict() for hit in super().search(query, limit)]

    async def asearch(self, query: str, limit: int) -> list[Any]:
        """Do the same."""
        return self.search(query, limit)


class BrokenReader(FakeReader):
    """Raise, return too few pages or none that is one, or never return in time."""

    def __init__(self, fault: str) -> None:
        super().__init__(error=OSError("too many open files") if fault == "raises" else None)
        self._fault = fault
        self._never = threading.Event()

    def read(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Deliver the fault."""
        if self._fault == "hangs":
            self._never.wait(limits.seconds + 3)
        return self._broken(urls, limits)

    async def aread(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Do the same."""
        if self._fault == "hangs":
            await asyncio.sleep(limits.seconds + 3)
        return self._broken(urls, limits)

    def _broken(self, urls: Sequence[str], limits: ReadingLimits) -> list[Any]:
        pages = super().read(urls, limits)
        return [None for _ in pages] if self._fault == "no_pages" else pages[1:]


def prepared(site: Website) -> Website:
    """Give the site the pages that only these tests need."""
    damaged = {
        "/binary": Answer(random.Random(7).randbytes(5000), HTML),  # noqa: S311
        "/damaged-gzip": Answer(b"this is no gzip", headers={"Content-Encoding": "gzip"}),
        "/damaged-pdf": Answer(b"%PDF-1.7\nnothing follows", "application/pdf"),
        "/garbled": Answer(page("accents").decode().encode("latin-1"), HTML),
    }
    site.answers.update(damaged)
    site.latency["/late"] = 60
    return site


def as_found(hits: Sequence[Hit], fault: str) -> list[Hit]:
    """Return the hits as a search with this fault finds them."""
    match fault:
        case "zero_hits":
            return []
        case "no_urls":
            return [hit._replace(url="") for hit in hits]
        case "duplicates":
            return [copy for hit in hits for copy in (hit, hit._replace(url=f"{hit.url}#again"))]
    return list(hits)


def spoil(server: Loopback, fault: str) -> None:
    """Make a search service fail in this way."""
    match fault:
        case "invalid_key":
            server.statuses = [401]
        case "quota":
            server.statuses, server.headers = [429] * 3, {429: {"Retry-After": "30"}}
        case "server_error":
            server.statuses = [500] * 3
        case "heals":
            server.statuses, server.headers = [429, 500], {429: {"Retry-After": "0"}}
        case "timeout" | "hangs":
            server.seconds = 60
        case "malformed":
            server.body = b'{"results": [{"url": "http'
        case "no_object":
            server.body = b"[1]"


def question(case: Case) -> str:
    """Return a question that no other case asks."""
    return f"Who designed lighthouse {case.number}?"


def settings(case: Case) -> Settings:
    """Return limits that a slow part meets soon, and no other part."""
    return Settings(
        page_seconds=0.6 if case.slow else 15,
        max_web_seconds=0.4 if case.search == "hangs" else 2 if case.reader == "hangs" else 30,
        page_bytes=300_000,
        requests_per_site=8,
    )
