"""40,000 characters of any bad shape are read in no time by whatever reads text from outside."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest

from crag.answering.citations import attributed, validate
from crag.correction.queries import keywords, read_query
from crag.correction.strips import decompose
from crag.documents.chunks import chunks_of
from crag.documents.sources import SourceText
from crag.errors import ContentError, EvaluatorError, PageError
from crag.events import event
from crag.generation import ExtractiveAnswerer
from crag.papers.bench.verdicts import verdict
from crag.papers.tasks import split_options
from crag.reflection.cleaning import cleaned
from crag.reflection_tokens import without_reflection
from crag.state import Citation, OfferedPassage, Source, Strip
from crag.testing import FakeReadingEvaluator
from crag.text.encodings import decoded, likeliest
from crag.text.html import read_page
from crag.text.language import language_of
from crag.text.paragraphs import blocks_of_text, paragraphs_of
from crag.text.sentences import split_sentences
from crag.text.untrusted import neutral
from crag.text.urls import canonical
from crag.text.words import question_words, without_markup, words
from crag.web.transcribe import transcribe
from crag.wording import civil_reply, plainly_asked, with_subject
from tests.repeating import times
from tests.torture.shapes import shapes

LENGTH = 40_000
SECONDS = 2.0
"""Of the processor, for one text; a pattern that is not linear takes minutes."""
PLAIN = "Yes. A text of one paragraph, and it has two sentences."
SOURCE = Source(id="1", title="A", url="a.md", position="")


def cite(text: str) -> object:
    return validate(text, [Citation(number=1, text=text, source=SOURCE)])


def attribute(text: str) -> object:
    strip = Strip(text=text, kind="document", source=SOURCE, score=1.0, kept=True, reason="")
    passage = OfferedPassage(title="A", text=text, label="document", grade="", strips=[strip])
    return attributed(text, [passage])


def quote(text: str) -> object:
    strip = Strip(text=text, kind="document", source=SOURCE, score=1.0, kept=True, reason="")
    return ExtractiveAnswerer(FakeReadingEvaluator(0.9, "x")).quote("What is a?", [strip])


READERS: dict[str, Callable[[str], Any]] = {
    "plainly_asked": plainly_asked,
    "with_subject": lambda text: (with_subject(text, ["Who?"]), with_subject("why?", [text])),
    "civil_reply": lambda text: civil_reply(text[:200], follows=True),
    "neutral": neutral,
    "validate": cite,
    "attributed": attribute,
    "quoted": quote,
    "event": lambda text: event("abstained", "generate", text),
    "cleaned": cleaned,
    "without_reflection": without_reflection,
    "split_options": split_options,
    "sentences": decompose,
    "sentences_de": lambda text: split_sentences(text, "de"),
    "read_query": read_query,
    "keywords": keywords,
    "verdict": verdict,
    "language_of": language_of,
    "without_markup": without_markup,
    "paragraphs_of": paragraphs_of,
    "canonical": lambda text: canonical(f"http://{text}"),
    "decoded": lambda text: decoded(
        text.encode("latin-1", "replace"), f"text/html; charset={text}"
    ),
    "likeliest": lambda text: likeliest(text.encode()),
    "plain_blocks": blocks_of_text,
    "chunks": lambda text: chunks_of(
        SourceText(source="/a", title="A", blocks=blocks_of_text(text), unit="line")
    ),
    "words": lambda text: list(words(text)),
    "question_words": question_words,
    "whole_html": read_page,
    "web_html": lambda text: transcribe(text.encode(), "text/html", "http://a/"),
    "web_markdown": lambda text: transcribe(text.encode(), "text/markdown", "http://a/"),
}
"""What reads text from outside, each as it is called with it."""


def slow(read: Callable[[str], Any], texts: Iterable[str]) -> dict[str, float]:
    """Return the beginnings of the texts that take too long, with their seconds."""
    found: dict[str, float] = {}
    for text in texts:
        start = time.thread_time()
        with suppress(ContentError, EvaluatorError, PageError, RecursionError, ValueError):
            read(text)
        seconds = time.thread_time() - start
        if seconds > SECONDS:
            found[f"{text[:30]!r}"] = round(seconds, 2)
    return found


@pytest.mark.parametrize("name", READERS)
def test_every_shape_is_read_in_time(name: str) -> None:
    slow(READERS[name], [PLAIN])
    assert slow(READERS[name], list(shapes(LENGTH))[:: times(60, 4)]) == {}
