"""The paper's evaluator: T5 with one regression output (CRAG, Sec. 4.2)."""

from collections.abc import Sequence
from typing import Any

from crag.correction.scoring import joined
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
        import torch

        ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}
        rows = [
            [
                *(tokenizer.unk_token_id if piece in ends else piece for piece in pieces),
                tokenizer.eos_token_id,  # At the end and only there, as the head reads it.
            ]
            for pieces in tokenizer(
                [joined(question, text) for text in texts],
                add_special_tokens=False, truncation=True, max_length=self.max_length - 1,
            ).input_ids
        ]  # fmt: skip
        width = max(map(len, rows))
        padded = [row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return {"input_ids": torch.tensor(padded), "attention_mask": torch.tensor(mask)}

    def _scores(self, logits: Any) -> list[float]:
        scores: list[float] = logits.tolist()
        return scores
