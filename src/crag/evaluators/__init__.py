"""Evaluators: judges of how well texts serve a question, behind the Protocol in `crag.parts`."""

from crag.evaluators.chat import ChatEvaluator
from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.evaluators.loading import load_evaluator
from crag.evaluators.reader import ReaderAttributor, ReaderEvaluator
from crag.evaluators.rerank import RerankEvaluator
from crag.evaluators.t5 import T5Evaluator

__all__ = [
    "ChatEvaluator", "CrossEncoderEvaluator", "ReaderAttributor",
    "ReaderEvaluator", "RerankEvaluator", "T5Evaluator", "load_evaluator",
]  # fmt: skip
