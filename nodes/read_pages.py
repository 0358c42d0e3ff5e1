"""Read the pages that the search found."""

import time
from collections.abc import Sequence
from typing import Literal

from pydantic import TypeAdapter

from crag.correction.provenance import strips_of_page, strips_of_snippet
from crag.correction.shortlist import shares_less
from crag.events import Event, event, redact
from crag.parts import Page, PageReader, ReadingLimits
from crag.plain import said
from crag.runtime.calls import Attempt, as_many, within
from crag.settings import Settings
from crag.state import State, Strip, Usage, WebPage
from crag.text.paragraphs import paragraphs_of

_FALLBACK = "its snippet is used"
_PAGES = TypeAdapter(list[Page])
_GRACE = 1.0
"""Seconds past the budget in which a reader can still return what it read in time."""
_LONGEST_TEXT, _MOST_PARAGRAPHS = 1_000_000, 400
"""Characters of a text that came with a hit; the same limit as for a page."""


def read_pages(state: State, settings: Settings, reader: PageReader | None) -> State:
    """Turn hits into unscored strips: the paragraphs of their pages, or their snippets.

    CRAG, Sec. 4.5: pages are visited and transcribed. If the search service returned the text, the
    page is not visited. If a page fails, the node falls back to its hit's snippet, or to the title
    if there is no snippet (official code), and records an event.
    """
    start, hits = time.monotonic(), state.get("pages", [])
    given = {hit["url"]: page for hit in hits if (page := _given(hit))}
    unread = [hit["url"] for hit in hits if hit["url"] not in given]
    urls = unread[: settings.max_pages] if reader else []
    spent = state.get("usage", {}).get("web_milliseconds", 0) / 1000
    limits = ReadingLimits(settings.max_web_seconds - spent, robots=settings.obey_robots)
    read = _read(reader, urls, limits)
    pages, strips, events = list[WebPage](), list[Strip](), list[Event]()
    for place, hit in enumerate(hits):
        page = given.get(hit["url"]) or read.get(hit["url"])
        page = page and _unless_another(state["question"], page, hit["snippet"])
        pages.append(_record(hit, page, "given" if hit["url"] in given else "read"))
        if page is not None and page.problem is None:
            strips += strips_of_page(hit, page, place, settings.variant.titles)
            continue
        strips += strips_of_snippet(hit, place)
        if page is not None:
            detail = f"{page.url}: {page.detail or page.problem}"
            events.append(event("page_failed", "read_pages", detail, _FALLBACK))
    fetched = sum(page.problem != "budget" for page in read.values())
    usage = Usage(pages=fetched, web_milliseconds=round((time.monotonic() - start) * 1000))
    return State(pages=pages, strips=strips, events=events, usage=usage)


def _read(reader: PageReader | None, urls: Sequence[str], limits: ReadingLimits) -> dict[str, Page]:
    """Return the page for each address; after a failure, none was read."""
    pages: list[Page] = []
    with Attempt("page reader") as attempt:
        if reader and urls and limits.seconds > 0:
            seconds = limits.seconds + _GRACE
            replied = within(seconds, reader.read, list(urls), limits)
            pages = _PAGES.validate_python(as_many(replied, len(urls), "page reader"))
    if len(pages) == len(urls):
        return dict(zip(urls, pages, strict=True))
    detail = said(attempt.error or "no time was left after the search")
    return {url: Page(url, problem="budget", detail=detail) for url in urls}


def _unless_another(question: str, page: Page, snippet: str) -> Page:
    """Return a page as failed if it holds no text, or the server sent something else."""
    detail = "its text has less to do with the question than its snippet"
    if not page.paragraphs:
        detail = "it holds no text"
    elif not shares_less(question, " ".join(page.paragraphs), snippet):
        return page
    return page if page.problem else page._replace(problem="empty", detail=detail)


def _given(hit: WebPage) -> Page | None:
    """Return the page that the search service returned with a hit, if it did."""
    paragraphs = paragraphs_of(hit.get("text", "")[:_LONGEST_TEXT])[:_MOST_PARAGRAPHS]
    return Page(hit["url"], hit["title"], paragraphs) if paragraphs else None


def _record(hit: WebPage, page: Page | None, origin: Literal["given", "read"]) -> WebPage:
    record: WebPage = {**hit}
    record.pop("text", None)
    if page is not None:
        record["title"] = page.title or hit["title"]
        record["status"] = origin if page.problem is None else "failed"
        record["detail"] = redact(page.detail)
        record["paragraphs"] = len(page.paragraphs)
    return record
