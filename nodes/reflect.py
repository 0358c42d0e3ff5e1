"""Answer with a model that reflects: `short_form`, `beam_step` and `graded_loop` of the graph."""

from langchain_core.retrievers import BaseRetriever

from crag.parts import ReflectionBackend
from crag.reflection.driver import Algorithm, Driver
from crag.settings import Settings
from crag.state import State


def reflect(  # noqa: PLR0913 - a node and its parts
    state: State,
    settings: Settings,
    algorithm: Algorithm,
    backend: ReflectionBackend,
    retriever: BaseRetriever | None = None,
    *,
    name: str,
) -> State:
    """Run an algorithm of `crag.reflection`, or one round of its beam search.

    Without a retriever the passages of the state serve for every segment.
    """
    if retriever is None:
        settings = settings.model_copy(update={"segment_retrieval": "static"})
    driver = Driver(backend, settings, retriever=retriever, node=name)
    return driver.answer(state, algorithm)
