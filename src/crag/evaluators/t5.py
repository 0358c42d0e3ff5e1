"""The paper's evaluator: T5 with one regression output (CRAG, Sec. 4.2)."""

import re
from collections.abc import Sequence
from typing import Any

from crag.correction.strips import joined
from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.state import Thresholds

PAPER = Thresholds(upper=0.592, lower=-0.995)
"""What the official scripts use for PopQA; the paper prints 0.59 and -0.99."""


class T5Evaluator(CrossEncoderEvaluator):
    """Score by a T5 that was trained as the paper's, or by the authors' own checkpoint.

    The folder is one that transformers saved, in safetensors or in a .bin with nothing but tensors.
    The score is the raw output: trained towards -1 and 1, but not limited to them. Question and
    text are cut together at 512 tokens; the official scoring of documents (unlike that of strips)
    lets longer ones through. A special token that a text spells out, such as ``</s>``, counts as an
    unknown word: T5 reads its answer where the text ends. A model that overflows gives NaN.
    """

    usual = PAPER
    takes_pickles = True

    def _inputs(self, tokenizer: Any, question: str, texts: Sequence[str]) -> Any:
        ends = f"{re.escape(tokenizer.eos_token)}|{re.escape(tokenizer.pad_token)}"
        pairs = [re.sub(ends, tokenizer.unk_token, joined(question, text)) for text in texts]
        return tokenizer(
            pairs, truncation=True, padding=True, max_length=self.max_length, return_tensors="pt"
        )

    def _scores(self, logits: Any) -> list[float]:
        scores: list[float] = logits.tolist()
        return scores
