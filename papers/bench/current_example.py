"""The current example, which supplies documents and published knowledge."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.papers.bench.examples import Example

_EXAMPLE: ContextVar[Example | None] = ContextVar("crag_bench_example", default=None)


@contextmanager
def answering(example: Example) -> Iterator[None]:
    """Make `example` current in the ``with`` block, also in threads and tasks started there."""
    token = _EXAMPLE.set(example)
    try:
        yield
    finally:
        _EXAMPLE.reset(token)


def current_example() -> Example:
    """Return the current example.

    Raises:
        LookupError: there is none.
    """
    example = _EXAMPLE.get()
    if example is None:
        raise LookupError("no example of a benchmark is being answered here")
    return example


class ExampleRetriever(BaseRetriever):
    """Return the documents of the current example for any question."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del query, run_manager
        return list(current_example().documents)
