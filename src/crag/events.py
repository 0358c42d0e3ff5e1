"""Failures and decisions during a run, as data that every view of the trace shows."""

import os
import re
from typing import Literal

from typing_extensions import TypedDict

from crag.plain import said, shortened, without_credentials

EventKind = Literal[
    "contextualize_failed", "contextualize_skipped",
    "nothing_retrieved", "retrieval_failed", "filter_ignored",
    "question_respelled", "unread_language", "evaluator_failed", "rewrite_failed",
    "search_unavailable", "search_failed", "search_empty", "search_refused",
    "page_failed", "model_failed",
    "model_refused", "model_empty", "reply_cut", "model_declined", "citation_removed",
    "link_removed", "uncited_answer", "wordless_answer", "own_knowledge", "reflection_limited",
    "constraints_waived", "unsupported_answer", "abstained",
]  # fmt: skip

_LONGEST_DETAIL = 500
_SECRET_NAME = re.compile(r"(_KEY|_TOKEN|_SECRET|PASSWORD)$", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"\b(sk-|tvly-|hf_|lsv2_)[\w*-]{6,}|(?<=Bearer )\S{8,}")


class Event(TypedDict):
    """One entry of the trace."""

    kind: EventKind
    node: str
    """The node that recorded it."""
    detail: str
    """What happened and how to fix it, in one sentence for the user."""
    fallback: str
    """What the run did instead; empty if there was no fallback."""


def event(kind: EventKind, node: str, detail: object, fallback: str = "") -> Event:
    """Record `detail` (a sentence or an exception), with secrets removed."""
    return Event(kind=kind, node=node, detail=describe(detail), fallback=fallback)


def redact(text: str) -> str:
    """Mask keys in `text`, and in its addresses users, passwords and what a query gives."""
    return without_credentials(without_keys(text))


def without_keys(text: str) -> str:
    """Mask keys in `text`: values of secret environment variables, and well-known key formats."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= 8:  # noqa: PLR2004 - shorter ones are words
            text = text.replace(value, "[secret]")
    return _SECRET_VALUE.sub("[secret]", text)


def describe(detail: object) -> str:
    """Return a sentence or an exception on one line of at most 500 characters, without secrets.

    A sentence is our own: the address of a page in it names its query, which tells pages apart.
    """
    text = said(detail)
    if isinstance(detail, BaseException):
        text = redact(f"{type(detail).__name__}: {text}" if text else type(detail).__name__)
    else:
        text = without_keys(without_credentials(text, queries=False))
    return shortened(text, _LONGEST_DETAIL)
