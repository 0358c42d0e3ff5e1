"""Read the pages that the search found."""

import time
from collections.abc import Sequence
from typing import Literal

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from crag.correction.provenance import strips_of_page, strips_of_snippet
from crag.correction.shortlist import shares_less
from crag.events import Event, event, redact
from crag.parts import Page, PageReader, ReadingLimits
from crag.plain import said
from crag.runtime.calls import Attempt, as_many, within
from crag.settings import Settings
from crag.state import State, Strip, Usage, WebPage
from crag.text.paragraphs import paragraphs_of

PAGE_SECONDS, PAGE_BYTES = 8.0, 3_000_000
"""The most for one page, after decompression."""
_FALLBACK = "its snippet is used"
_PAGES = TypeAdapter(list[Page])
_GRACE = 1.0
"""Seconds past the budget in which a reader can still return what it read in time."""
_LONGEST_TEXT, _MOST_PARAGRAPHS = 1_000_000, 400
"""Characters of a text that came with a hit; the same limit as for a page."""


class ReadPagesUpdate(TypedDict):
    """Written by `read_pages`: the paragraphs found, as unscored strips."""

    pages: list[WebPage]
    strips: list[Strip]
    events: list[Event]
    usage: Usage


def read_pages(state: State, settings: Settings, reader: PageReader | None) -> ReadPagesUpdate:
    """Turn hits into strips: the paragraphs of their pages, or their snippets.

    CRAG, Sec. 4.5: pages are visited and transcribed. If the search service returned the text, the
    page is not visited. If a page fails, the node falls back to its hit's snippet, or to the title
    if there is no snippet (official code), and records an event.
    """
    start, hits = time.monotonic(), state.get("pages", [])
    given = {hit["url"]: page for hit in hits if (page := _given(hit))}
    unread = [hit["url"] for hit in hits if hit["url"] not in given]
    urls = unread[: settings.max_pages] if reader else []
    read = _read(reader, urls, _limits(state, settings))
    update = ReadPagesUpdate(pages=[], strips=[], events=[], usage=Usage())
    for place, hit in enumerate(hits):
        page = given.get(hit["url"]) or read.get(hit["url"])
        page = page and _unless_another(state["question"], page, hit["snippet"])
        update["pages"].append(_record(hit, page, "given" if hit["url"] in given else "read"))
        if page is not None and page.problem is None:
            update["strips"] += strips_of_page(hit, page, place, settings.variant.titles)
            continue
        update["strips"] += strips_of_snippet(hit, place)
        if page is not None:
            detail = f"{page.url}: {page.detail or page.problem}"
            update["events"].append(event("page_failed", "read_pages", detail, _FALLBACK))
    update["usage"] = Usage(
        pages=sum(page.problem != "budget" for page in read.values()),
        web_milliseconds=round((time.monotonic() - start) * 1000),
    )
    return update


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
    late = "no time was left after the search" if limits.seconds <= 0 else "no page was read"
    detail = late if attempt.error is None else said(attempt.error)
    return {url: Page(url, problem="budget", detail=detail) for url in urls}


def _unless_another(question: str, page: Page, snippet: str) -> Page:
    """Return a page as failed if it holds no text, or the server sent something else."""
    if not (page.paragraphs or page.problem):
        return page._replace(problem="empty", detail="it holds no text")
    if page.problem is None and shares_less(question, " ".join(page.paragraphs), snippet):
        detail = "its text has less to do with the question than its snippet"
        return page._replace(problem="empty", detail=detail)
    return page


def _given(hit: WebPage) -> Page | None:
    """Return the page that the search service returned with a hit, if it did."""
    paragraphs = paragraphs_of(hit.get("text", "")[:_LONGEST_TEXT])[:_MOST_PARAGRAPHS]
    return Page(hit["url"], hit["title"], paragraphs) if paragraphs else None


def _limits(state: State, settings: Settings) -> ReadingLimits:
    spent = state.get("usage", {}).get("web_milliseconds", 0) / 1000
    return ReadingLimits(
        seconds=settings.max_web_seconds - spent,
        page_seconds=PAGE_SECONDS,
        page_bytes=PAGE_BYTES,
        robots=settings.obey_robots,
    )


def _record(hit: WebPage, page: Page | None, origin: Literal["given", "read"]) -> WebPage:
    record: WebPage = {**hit}
    record.pop("text", None)
    if page is not None:
        record["title"] = page.title or hit["title"]
        record["status"] = origin if page.problem is None else "failed"
        record["detail"] = redact(page.detail)
        record["paragraphs"] = len(page.paragraphs)
    return record
