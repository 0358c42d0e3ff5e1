"""Evaluators: judges of how well texts serve a question, behind the Protocol in `crag.parts`."""

from langchain_core.embeddings import Embeddings

from crag.encoder import packaged_encoder
from crag.errors import EvaluatorError
from crag.evaluators.cosine import CosineEvaluator
from crag.parts import Evaluator

__all__ = ["CosineEvaluator", "load_evaluator"]


def load_evaluator(name: str = "default", embeddings: Embeddings | None = None) -> Evaluator:
    """Return the evaluator called `name`; its weights load on first use.

    `default` and `cosine` are the calibrated cosine over the packaged encoder, or over
    `embeddings` if given (the calibration belongs to all-MiniLM-L6-v2).

    Raises:
        EvaluatorError: there is none of that name.
    """
    if name not in {"default", "cosine"}:
        message = f"no evaluator is called {name!r}; there are: default, cosine"
        raise EvaluatorError(message)
    return CosineEvaluator.fitted(embeddings or packaged_encoder())
