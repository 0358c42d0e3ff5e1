"""Graphs of fakes for the page to show: hostile text, a large trace, slow words."""

import time
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from crag.graph import build_crag, build_rag
from crag.parts import Hit, Parts
from crag.testing import FakeChatModel, FakeEvaluator, FakeReader, FakeRetriever, FakeSearcher

HOSTILE = (
    "The first <b>program</b> was by Ada. It came in 1843. So the notes say. "
    "<script>document.title = 'owned'</script> stands in the first notes. "
    "<img src=x onerror=\"document.title = 'owned'\"> too. And nothing else there. "
    "Cats sleep a lot in winter. They like to be warm. That is all of it."
)
SCORES = {"first": 0.3, "Babbage": -0.2}


def replied(text: str) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class SlowModel(FakeChatModel):
    """Takes its time for each word, so that a run can be watched and cancelled.

    Its first reply is a query; it answers with the second where it is given passages.
    """

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return replied(self.replies["<passage" in messages[-1].text])

    def _stream(self, *arguments: Any, **options: Any) -> Any:
        for chunk in super()._stream(*arguments, **options):
            time.sleep(0.1)
            yield chunk


class EchoModel(FakeChatModel):
    """Completes a follow-up question, and answers with the question it was asked.

    It counts 1,000 tokens read and 100 written for each call.
    """

    def _stream(self, *arguments: Any, **options: Any) -> Any:
        yield from super()._stream(*arguments, **options)
        counted = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=counted))

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = messages[-1].text
        if "<passage" not in text:
            return replied("When did Ada write it?")
        asked = next(line for line in text.splitlines()[::-1] if "?" in line)
        return replied(f"To **{asked.strip()}** the file says so [2].")


def _document(text: str, name: str, source: str) -> Document:
    return Document(text, id=name, metadata={"title": name, "source": source, "position": "line 1"})


_hostile = Parts(
    retriever=FakeRetriever(
        documents=[
            _document(HOSTILE, "Ada <i>Lovelace</i>", "javascript:document.title='owned'"),
            _document("Babbage designed engines for years.", "Babbage", "https://example.org/b"),
        ]
    ),
    evaluator=FakeEvaluator(SCORES),
    model=SlowModel(
        replies=["ada first program", "Ada did it first [1], <b>surely</b>, and all agree [2, 4]."]
    ),
    searcher=FakeSearcher(
        [
            Hit("<u>Programmers</u>", "https://example.org/p", "She was first."),
            Hit("Trap", "javascript:document.title='owned'", "first of all"),
        ]
    ),
    reader=FakeReader({"https://example.org/p": ["She was the <s>first</s> programmer of all."]}),
)
crag = build_crag(_hostile)
rag = build_rag(_hostile)
"""What documents, web and model say is hostile; the model takes its time."""

failing = build_rag(
    Parts(
        retriever=_hostile.retriever,
        evaluator=_hostile.evaluator,
        model=FakeChatModel(error=ConnectionError("nobody listens at 127.0.0.1:9")),
    )
)
"""Finds documents, and has a model that cannot be reached."""

chat = build_crag(
    Parts(
        retriever=FakeRetriever(
            documents=[
                _document(
                    "## Ada *Lovelace*\n\nAda wrote the **first** `program`, see "
                    "[the notes](https://example.org/n).\n\n- for an engine\n- in 1843\n\n"
                    "<b>No HTML</b> ![a picture](x.png)",
                    "Ada",
                    "/d/ada.md",
                ),
                _document("Babbage built the *engine* of __init__.", "Babbage", "/d/babbage.txt"),
            ]
        ),
        evaluator=FakeEvaluator(0.9),
        model=EchoModel(),
    )
)
"""A chat about a Markdown file: what follows is completed by the model."""


def _of_length(documents: int, strips: int, sentence: str) -> Parts:
    """Parts whose documents have as many strips of three such sentences."""
    texts = [
        " ".join(f"{sentence} {at}.{number}." for number in range(3 * strips))
        for at in range(documents)
    ]
    found = [_document(text, f"Document {at}", f"/d/{at}.md") for at, text in enumerate(texts)]
    return Parts(
        retriever=FakeRetriever(documents=found),
        evaluator=FakeEvaluator(0.9),
        model=FakeChatModel(replies=["It is so [1]."]),
    )


large = build_crag(_of_length(10, 120, "The kettle " + "boils water and steams " * 30 + "in case"))
