"""An evaluator as a reranker: documents in the order of its scores."""

from collections.abc import Sequence
from math import inf, isnan

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict

from crag.correction.provenance import passage_of
from crag.parts import Evaluator
from crag.runtime.evaluator_calls import scores_of


class EvaluatorReranker(BaseDocumentCompressor):
    """Order documents by an evaluator's scores, best first; all of them are scored in one call.

    Documents of the same score keep their order, and those without a score (NaN) come last.
    """

    evaluator: Evaluator
    """Scores title and text of each document."""
    model_config = ConfigDict(arbitrary_types_allowed=True, use_attribute_docstrings=True)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return all documents in the new order."""
        del callbacks
        passages = [passage_of(document, "passage") for document in documents]
        scores = scores_of(self.evaluator, query, passages)
        ranks = [inf if isnan(score) else -score for score in scores]
        return [documents[place] for place in sorted(range(len(ranks)), key=ranks.__getitem__)]
