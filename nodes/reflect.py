"""Answer with a model that reflects: `short_form`, `beam_step` and `graded_loop` of the graph."""

from dataclasses import KW_ONLY, dataclass

from langchain_core.retrievers import BaseRetriever

from crag.parts import ReflectionBackend
from crag.reflection.driver import Algorithm, Driver, ReflectUpdate
from crag.settings import Settings
from crag.state import State


@dataclass(frozen=True)
class Reflect:
    """Run an algorithm of `crag.reflection`, or one round of its beam search.

    Without a retriever the passages of the state serve for every segment.
    """

    algorithm: Algorithm
    backend: ReflectionBackend
    retriever: BaseRetriever | None = None
    _: KW_ONLY
    name: str

    def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Write the record of reflection, with the answer if the algorithm is over."""
        if self.retriever is None:
            settings = settings.model_copy(update={"segment_retrieval": "static"})
        driver = Driver(self.backend, settings, retriever=self.retriever, node=self.name)
        return driver.answer(state, self.algorithm)
