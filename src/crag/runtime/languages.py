"""Record that a part does not read the language of the question or of the documents."""

from typing import Literal, NamedTuple

from crag.events import Event, event
from crag.runtime.attempt import Attempt
from crag.text.language import languages_of, named, unread_language


class _Part(NamedTuple):
    """What an event says about a part that does not read a language."""

    attempt: str
    name: str
    advice: str
    fallback: str


_PARTS = {
    "retrieve": _Part(
        "languages of the retriever",
        "the embedding model",
        "name one that reads both (CRAG_EMBEDDING_MODEL), and index again",
        "find documents by shared words more than by meaning",
    ),
    "grade": _Part(
        "languages of the evaluator",
        "the evaluator",
        "name one that reads both (CRAG_EVALUATOR), such as chat",
        "use its scores all the same",
    ),
}


def unread(
    node: Literal["retrieve", "grade"], part: object, question: str, documents: str = ""
) -> list[Event]:
    """Return an event if it is clear that the part of a node does not read one of two texts."""
    words = _PARTS[node]
    with Attempt(words.attempt):
        for what, text in (("the question seems", question), ("the documents seem", documents)):
            if language := unread_language(part, text):
                reads = named(languages_of(part))
                detail = (
                    f"{what} to be in {named([language])}, and {words.name} reads {reads}: "
                    f"{words.advice}"
                )
                return [event("unread_language", node, detail, words.fallback)]
    return []
