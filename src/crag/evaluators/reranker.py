"""An evaluator as a reranker: documents in the order of its scores."""

from collections.abc import Sequence

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict

from crag.correction.provenance import passage_of
from crag.correction.scoring import with_title
from crag.parts import Evaluator


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
        scores = self.evaluator.score(
            query, [with_title(passage.title, passage.text) for passage in passages]
        )
        order = sorted(range(len(documents)), key=lambda place: _rank(scores[place]))
        return [documents[place] for place in order]


def _rank(score: float) -> tuple[bool, float]:
    return score != score, -score  # noqa: PLR0124 - NaN is the one number unlike itself
