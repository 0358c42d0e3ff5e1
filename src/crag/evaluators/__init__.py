"""Evaluators: judges of how well texts serve a question, behind the Protocol in `crag.parts`."""

from crag.evaluators.attribution import ReaderAttributor
from crag.evaluators.chat import ChatEvaluator
from crag.evaluators.chat_batch import BatchChatEvaluator
from crag.evaluators.cosine import CosineEvaluator
from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.evaluators.fallback import with_fallback
from crag.evaluators.loading import ASKING, NAMES, load_evaluator
from crag.evaluators.reader import ReaderEvaluator, packaged_reader
from crag.evaluators.remote import RemoteEvaluator, RemoteReader
from crag.evaluators.reranker import EvaluatorReranker
from crag.evaluators.t5 import T5Evaluator

__all__ = [
    "ASKING", "NAMES", "BatchChatEvaluator", "ChatEvaluator", "CosineEvaluator",
    "CrossEncoderEvaluator", "EvaluatorReranker", "ReaderAttributor", "ReaderEvaluator",
    "RemoteEvaluator", "RemoteReader", "T5Evaluator", "load_evaluator", "packaged_reader",
    "with_fallback",
]  # fmt: skip
