"""Faults for every part of the web branch, and questions that meet them alone and together."""

import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

from crag.events import EventKind
from tests.web.engines import ENGINES

SEARCH: dict[str, tuple[EventKind | None, int]] = {
    "not_configured": ("search_unavailable", 0),
    "invalid_key": ("search_unavailable", 1),
    "quota": ("search_failed", 1),
    "server_error": ("search_failed", 3),
    "timeout": ("search_failed", 3),
    "hangs": ("search_failed", 1),
    "no_such_host": ("search_failed", 0),
    "not_listening": ("search_failed", 0),
    "malformed": ("search_failed", 1),
    "no_object": ("search_failed", 1),
    "raises": ("search_failed", 0),
    "no_hits_at_all": ("search_failed", 0),
    "zero_hits": ("search_empty", 1),
    "no_urls": ("search_empty", 1),
    "duplicates": ("hits_dropped", 1),
    "heals": (None, 3),
}
"""What is recorded of each fault of a search, and how many requests reach the service."""

NOBODY = "http://127.0.0.1:9"
"""An address at which nothing listens."""
SLOW = ("late", "drip")
PAGES: dict[str, tuple[str, str]] = {
    "missing": ("/404", "status 404"),
    "server_error": ("/500", "status 500"),
    "late": ("/late", "in time"),
    "drip": ("/drip", "in time"),
    "bomb": ("/bomb", "larger than"),
    "endless": ("/endless", "larger than"),
    "loop": ("/loop", "in a circle"),
    "to_private": ("/to-private", "a private address"),
    "metadata": ("http://169.254.169.254/latest", "a cloud's metadata address"),
    "content_type": ("/image", "'image/png' is not"),
    "empty": ("/empty", "no text"),
    "binary": ("/binary", "binary"),
    "damaged_gzip": ("/damaged-gzip", "compression is damaged"),
    "damaged_pdf": ("/damaged-pdf", "damaged PDF"),
    "not_listening": (f"{NOBODY}/page", "no connection"),
    "no_such_host": ("http://nowhere.invalid/page", "cannot be resolved"),
}
"""Path or URL of each page that fails, and words of the record."""
HEALTHY = ("/article", "/navigation", "/text", "/pdf", "/latin-1", "/to-article", "/garbled")
"""Pages that can be read; the last is Latin-1 that claims to be UTF-8."""

READER = ("raises", "too_few", "no_pages", "hangs")
REWRITER = ("raises", "empty", "essay", "refuses", "no_model")
GENERATOR: dict[str, EventKind] = {
    "raises": "model_failed",
    "empty": "model_empty",
    "refuses": "model_refused",
    "cites_nothing_there": "citation_removed",
}
EVALUATOR = ("raises", "nan", "too_few", "raises_later")
RETRIEVER: dict[str, EventKind] = {"raises": "retrieval_failed", "empty": "nothing_retrieved"}


class Case(NamedTuple):
    """One question, with the fault of each part; an empty name is no fault."""

    number: int = 0
    engine: str = "tavily"
    way: Literal["invoke", "ainvoke"] = "ainvoke"
    score: float = -0.9
    search: str = ""
    pages: tuple[str, ...] = ("",)
    reader: str = ""
    rewriter: str = ""
    generator: str = ""
    evaluator: str = ""
    retriever: str = ""
    quoter: bool = True

    @property
    def slow(self) -> bool:
        """Whether pages are there that take longer than they may."""
        return any(fault in SLOW for fault in self.pages)


def alone() -> dict[str, Case]:
    """Return every fault by itself, by name."""
    searches = {f"{e}-{name}": Case(search=name, engine=e) for name in SEARCH for e in ENGINES}
    others = {
        "page": {name: Case(pages=(name, "")) for name in PAGES},
        "reader": {name: Case(reader=name, pages=("", "")) for name in READER},
        "rewriter": {name: Case(rewriter=name) for name in REWRITER},
        "generator": {name: Case(generator=name) for name in GENERATOR},
        "no-quoter": {name: Case(generator=name, quoter=False) for name in GENERATOR},
        "evaluator": {name: Case(evaluator=name, score=0.0) for name in EVALUATOR},
        "retriever": {name: Case(retriever=name) for name in RETRIEVER},
    }
    found = {f"{part}-{name}": case for part in others for name, case in others[part].items()}
    return searches | found


def together(seed: int, count: int) -> list[Case]:
    """Return cases with faults at random in every part."""
    draw = random.Random(seed)  # noqa: S311 - tests repeat

    def perhaps(names: Sequence[str], chance: float) -> str:
        return draw.choice(list(names)) if draw.random() < chance else ""

    return [
        Case(
            number=number,
            engine=draw.choice(list(ENGINES)),
            way=draw.choice(("invoke", "ainvoke", "ainvoke")),
            score=draw.choice((-0.9, -0.9, 0.0, 0.9)),
            search=perhaps(list(SEARCH), 0.4),
            pages=tuple(perhaps(list(PAGES), 0.5) for _ in range(draw.randint(1, 5))),
            reader=perhaps(READER, 0.15),
            rewriter=perhaps(REWRITER, 0.3),
            generator=perhaps(list(GENERATOR), 0.3),
            evaluator=perhaps(EVALUATOR, 0.2),
            retriever=perhaps(list(RETRIEVER), 0.1),
            quoter=draw.random() < 0.5,
        )
        for number in range(count)
    ]
