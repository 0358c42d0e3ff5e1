"""Operations of one token of each method, counted with torch's counter (CRAG v3, Table 6).

    python -m crag.papers.studies.flops [--tokens 1870]

The models are LLaMA2-7B and the T5-large evaluator, without weights: shapes are enough. A token
costs one pass over its whole prompt, without a cache of keys and values, once for each passage that
reflection reads; correction adds one pair of 512 tokens. The paper does not say how long its
prompts are. With 1,870 tokens a pass costs what it gives for RAG, and the other rows follow.
"""

import argparse
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForSequenceClassification

from crag.papers.bench.report import table

PAIR = 512
"""Tokens of a question with a document, padded as in the released evaluator."""
_TERA = 1e12
METHODS = {
    "RAG": ((1, 1), 0, "26.5"),
    "CRAG": ((1, 1), 1, "27.2"),
    "Self-RAG": ((1, 5), 0, "26.5 to 132.4"),
    "Self-CRAG": ((1, 3), 1, "27.2 to 80.2"),
}
"""Passes of the generator at least and at most, those of the evaluator, and the paper's number."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=1870, help="of a prompt with its passages")
    given = parser.parse_args()
    generator, evaluator = generator_flops(given.tokens), evaluator_flops(PAIR)
    print(f"generator, {given.tokens:,} tokens: {generator / _TERA:.1f} TFLOPs")
    print(f"evaluator, {PAIR} tokens: {evaluator / _TERA:.2f} TFLOPs\n")
    rows = [[name, told(name, generator, evaluator), one[2]] for name, one in METHODS.items()]
    print(table(["TFLOPs a token", "counted", "paper"], rows))


def told(method: str, generator: int, evaluator: int) -> str:
    """Return the operations of a method in TFLOPs, as the paper writes them."""
    passes, pairs, _ = METHODS[method]
    ends = [f"{(times * generator + pairs * evaluator) / _TERA:.1f}" for times in passes]
    return " to ".join(dict.fromkeys(ends))


def generator_flops(tokens: int, config: LlamaConfig | None = None) -> int:
    """Count one pass over a prompt; the default is LLaMA2-7B with Self-RAG's vocabulary."""
    with torch.device("meta"):
        model = LlamaForCausalLM(config or LlamaConfig(vocab_size=32016)).train(mode=False)
    return _counted(model, input_ids=_ids(tokens))


def evaluator_flops(tokens: int, config: T5Config | None = None) -> int:
    """Count one pair; the default is T5-large with one output."""
    large = T5Config(d_model=1024, d_ff=4096, num_layers=24, num_heads=16)
    large.num_labels, large.decoder_start_token_id = 1, 0
    with torch.device("meta"):
        model = T5ForSequenceClassification(config or large).train(mode=False)
        # It looks the end of the text up in the ids, which have no values here.
        head, pooled = model.classification_head, model.config.d_model
    passed = _counted(model.transformer, input_ids=_ids(tokens), decoder_input_ids=_ids(tokens))
    return passed + _counted(head, torch.empty((1, pooled), device="meta"))


def _ids(tokens: int) -> torch.Tensor:
    return torch.zeros((1, tokens), dtype=torch.long, device="meta")


def _counted(module: torch.nn.Module, *inputs: Any, **named: Any) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*inputs, **named)
    return int(counter.get_total_flops())


if __name__ == "__main__":
    main()
