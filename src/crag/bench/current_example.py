"""The example that is being answered: what its documents and published knowledge are taken from."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.bench.examples import Example

_EXAMPLE: ContextVar[Example | None] = ContextVar("crag_bench_example", default=None)


@contextmanager
def answering(example: Example) -> Iterator[None]:
    """Answer `example` in the ``with`` block, in threads and tasks begun there too."""
    token = _EXAMPLE.set(example)
    try:
        yield
    finally:
        _EXAMPLE.reset(token)


def current_example() -> Example:
    """Return the example that is being answered.

    Raises:
        LookupError: none is.
    """
    example = _EXAMPLE.get()
    if example is None:
        raise LookupError("no example of a benchmark is being answered here")
    return example


class ExampleRetriever(BaseRetriever):
    """Return the documents of the example that is being answered, whatever is asked."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del query, run_manager
        return list(current_example().documents)
