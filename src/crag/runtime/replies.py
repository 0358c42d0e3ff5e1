"""What parts return, checked once for each Protocol.

Parts are foreign code: what they return may be of any type, hold texts that nobody can write down,
or change later. Each function here takes such a reply and returns new values of the types that the
Protocol names. Call them within the `Attempt` that calls the part: whatever the reply itself raises
while it is read counts as a failure of the part.

Raises, in every function:
    ReplyError: the reply is not what the Protocol says; the message names the part.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import TypeAdapter, ValidationError

from crag.errors import ReplyError
from crag.parts import (
    Evaluator,
    Hit,
    Page,
    Passage,
    Quotation,
)
from crag.plain import WIDEST, all_well_formed, plain_json, said, well_formed
from crag.reading import Reading
from crag.state import Strip, Thresholds, Usage

_MOST_QUOTATIONS = 1000
_ADDED = 200
"""Characters by which a quotation may exceed its strip: fences of code, and what labels a note."""
_MOST_CHARACTERS = 50_000_000
"""Of all documents with metadata, or of all pages: what a run holds is stored at every step."""
_MOST_PARAGRAPHS = 12_000
"""Of one page, as of the reader that is packaged."""
_LONGEST_REPLY = 1_000_000
"""Characters of a model's reply, or of a segment."""
_LONGEST_FIELD = 1_000_000
"""Characters of each field of a hit."""
_READING: Final = TypeAdapter(Reading)
_EVIDENCE: Final = re.compile(r"(0:\d+( \d+:\d+)*)?")
_PAGE: Final = TypeAdapter(Page)
_QUOTATION: Final = TypeAdapter(Quotation)
Checked = TypeVar("Checked")


def documents_of(found: object, most: int, part: str = "retriever") -> list[Document]:
    """Return at most `most` documents of a retriever or another part; metadata become JSON."""
    documents = [_document(one, part) for one in _items(found, part, "documents", most)]
    _check_length(part, (len(one.page_content) + len(str(one.metadata)) for one in documents))
    return documents


def _check_length(part: str, lengths: Iterable[int]) -> None:
    length = sum(lengths)
    if length > _MOST_CHARACTERS:
        problem = f"returned {length:,} characters; a run holds at most {_MOST_CHARACTERS:,}"
        raise ReplyError(part, problem)


def _document(one: object, part: str) -> Document:
    if not isinstance(one, Document):
        raise ReplyError(part, f"returned {_name(one)} instead of a Document")
    text, metadata = vars(one).get("page_content"), vars(one).get("metadata")
    if not isinstance(text, str):
        raise ReplyError(part, f"returned a document whose text is {_name(text)}")
    known: Any = plain_json(metadata) if isinstance(metadata, Mapping) else {}
    own_id = None if one.id is None else said(one.id)
    return Document(page_content=well_formed(text), metadata=known, id=own_id)


def scores_of_reply(found: object, expected: int) -> list[float]:
    """Return one score for each of the `expected` texts; they may be NaN or infinite."""
    scores = _as_many(found, "evaluator", "scores", expected, "texts")
    return [float(score) for score in scores]


def readings_of(found: object, passages: Sequence[Passage]) -> list[Reading]:
    """Return one reading for each passage, whose offsets fit its text."""
    items = _as_many(found, "evaluator", "readings", len(passages), "texts")
    readings = [_valid(_READING, one, "evaluator", "a reading") for one in items]
    for reading, passage in zip(readings, passages, strict=True):
        span, length = reading["span"], len(passage.text)
        if (
            not -1 <= reading["score"] <= 1  # Not a number fails here, too.
            or not _EVIDENCE.fullmatch(reading["evidence"])
            or (span is not None and not _is_within(span["start"], span["end"], length))
            or (span is not None and not math.isfinite(span["score"]))
        ):
            problem = f"returned a reading that does not fit its text: {said(reading)}"
            raise ReplyError("evaluator", problem)
    return readings


def thresholds_of(evaluator: Evaluator) -> Thresholds:
    """Return the evaluator's own thresholds, two finite numbers in order."""
    own: Any = evaluator.thresholds
    if not isinstance(own, Mapping) or not {"upper", "lower"} <= set(own):
        raise ReplyError("evaluator", "has no thresholds `upper` and `lower`")
    upper, lower = float(own["upper"]), float(own["lower"])
    if not (math.isfinite(upper) and math.isfinite(lower) and lower <= upper):
        raise ReplyError("evaluator", f"has the thresholds upper {upper:g} and lower {lower:g}")
    return Thresholds(upper=upper, lower=lower)


def hits_of(found: object, most: int) -> list[Hit]:
    """Return at most `most` hits of a searcher; null counts as an empty text."""
    hits = _items(found, "searcher", "hits", most)
    for hit in hits:
        if not isinstance(hit, Hit):
            raise ReplyError("searcher", f"returned {_name(hit)} instead of a Hit")
    return [Hit(*("" if text is None else said(text)[:_LONGEST_FIELD] for text in hit))
            for hit in hits]  # fmt: skip


def pages_of(found: object, urls: Sequence[str]) -> list[Page]:
    """Return one page for each address; one that is invalid, or holds no text, has a problem."""
    replies = _as_many(found, "page reader", "pages", len(urls), "addresses")
    pages = [_page(page, url) for page, url in zip(replies, urls, strict=True)]
    _check_length("page reader", (len(text) for page in pages for text in page.paragraphs))
    return pages


def _page(found: object, url: str) -> Page:
    if not isinstance(found, Page):
        detail = f"the page reader returned {_name(found)} instead of a Page"
        return Page(url, problem="unreadable", detail=detail)
    try:
        page = _valid(_PAGE, found._replace(url=url), "page reader", "a page")
    except ReplyError as error:
        return Page(url, problem="unreadable", detail=str(error))
    if not (page.paragraphs or page.problem):
        page = page._replace(problem="empty", detail="it holds no text")
    return page._replace(
        title=page.title[:_LONGEST_FIELD],
        paragraphs=page.paragraphs[:_MOST_PARAGRAPHS],
        fetched_bytes=_count(page.fetched_bytes),
    )


def quotations_of(found: object, strips: Sequence[Strip]) -> list[Quotation]:
    """Return quotations whose index and offsets fit the strips that the quoter was given."""
    items = _items(found, "quoter", "quotations", _MOST_QUOTATIONS)
    quotations = [_valid(_QUOTATION, one, "quoter", "a quotation") for one in items]
    for quoted in quotations:
        if not quoted.text.strip():
            raise ReplyError("quoter", "returned a quotation without text")
        if not 0 <= quoted.strip < len(strips):
            problem = f"quoted strip {quoted.strip} of {len(strips)}; the first one is 0"
            raise ReplyError("quoter", problem)
        strip = strips[quoted.strip]
        length = len(strip["text"])
        if len(quoted.text) > len(strip.get("before", "")) + length + _ADDED:
            problem = f"quoted {len(quoted.text)} characters of a strip of {length}"
            raise ReplyError("quoter", problem)
        for place in (quoted.place, quoted.span):
            if place is not None and not _is_within(*place, length):
                problem = f"quoted the characters {place} of a strip of {length} characters"
                raise ReplyError("quoter", problem)
    return quotations


def degrees_of(found: object, sentences: int, passages: int) -> list[list[float]]:
    """Return for each of the `sentences` one degree in [0, 1] for each of the `passages`."""
    rows = _as_many(found, "attributor", "rows", sentences, "sentences")
    return [[_degree(one) for one in _as_many(row, "attributor", "degrees", passages, "passages")]
            for row in rows]  # fmt: skip


def _degree(found: object) -> float:
    if not isinstance(found, int | float) or not 0 <= found <= 1:  # Not a number fails here, too.
        raise ReplyError("attributor", f"returned {said(found)} instead of a degree in [0, 1]")
    return float(found)


def reply_of(text: str) -> str:
    """Return the text of a model's reply, well-formed; one of over a million characters is none."""
    if len(text) > _LONGEST_REPLY:
        raise ReplyError("model", f"replied with {len(text):,} characters")
    return well_formed(text)


def message_of(reply: object) -> BaseMessage | str:
    """Return what a chat model replied, a message or a text."""
    if not isinstance(reply, BaseMessage | str):
        raise ReplyError("model", f"returned {_name(reply)} instead of a message or a text")
    return reply


def usage_of(reply: object) -> Usage:
    """Return one call and its tokens; counts that are no numbers are left out."""
    counted = getattr(reply, "usage_metadata", None)
    usage = Usage(llm_calls=1)
    if isinstance(counted, Mapping) and counted:
        usage["input_tokens"] = _count(counted.get("input_tokens"))
        usage["output_tokens"] = _count(counted.get("output_tokens"))
    return usage


def _items(found: object, part: str, what: str, most: int) -> list[Any]:
    """Return at most `most` members of a list, a tuple, or anything else that can be iterated."""
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise ReplyError(part, f"returned {_name(found)} instead of a list of {what}")
    return list(islice(found, most))


def _as_many(found: object, part: str, what: str, expected: int, asked: str) -> list[Any]:
    items = _items(found, part, what, expected + 1)
    if len(items) != expected:
        count = f"{len(items)}" if len(items) < expected else "more"
        raise ReplyError(part, f"returned {count} {what} for {expected} {asked}")
    return items


def _valid(adapter: TypeAdapter[Checked], found: object, part: str, what: str) -> Checked:
    try:
        return adapter.validate_python(all_well_formed(found))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(said, first["loc"]))
        problem = f"returned what is not {what}: {f'{where}: ' if where else ''}{first['msg']}"
        raise ReplyError(part, problem) from None


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value <= WIDEST else 0


def _is_within(start: int, end: int, length: int) -> bool:
    return 0 <= start <= end <= length


def _name(value: object) -> str:
    return type(value).__name__
