"""Record that a part does not read the language of the question or of the documents."""

from typing import Literal

from crag.events import Event, event
from crag.runtime.attempt import Attempt
from crag.text.language import languages_of, named, unread_language

_WORDS = {
    "retrieve": (
        "the embedding model",
        "name one that reads both (CRAG_EMBEDDING_MODEL), and index again",
        "find documents by shared words more than by meaning",
    ),
    "grade": (
        "the evaluator",
        "name one that reads both (CRAG_EVALUATOR), such as chat",
        "use its scores all the same",
    ),
}
"""By node: the part, what to do about it, and what the run does."""


def unread(
    node: Literal["retrieve", "grade"], part: object, question: str, documents: str = ""
) -> list[Event]:
    """Return an event if it is clear that the part of a node does not read one of two texts."""
    name, advice, fallback = _WORDS[node]
    with Attempt(f"languages of {name}"):
        for what, text in (("the question seems", question), ("the documents seem", documents)):
            if language := unread_language(part, text):
                told = f"{what} to be in {named([language])}, and {name} reads "
                detail = f"{told}{named(languages_of(part))}: {advice}"
                return [event("unread_language", node, detail, fallback)]
    return []
