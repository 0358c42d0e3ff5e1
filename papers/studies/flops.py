"""Operations of one token of each method, counted with torch's counter (CRAG v3, Table 6).

    python -m crag.papers.studies.flops [--tokens 1870]

The models are LLaMA2-7B and the T5-large evaluator, without weights: shapes are enough. A token
costs one pass over its whole prompt, without a cache of keys and values, once for each passage that
reflection reads; correction adds one pair of 512 tokens. The paper does not say how long its
prompts are. With 1,870 tokens a pass costs what it gives for RAG, and the other rows follow.
"""

import argparse
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForSequenceClassification,
)

from crag.papers.bench.report import table

PAIR = 512
"""Tokens of a question with a document, padded as in the released evaluator."""
_TERA = 1e12


class Method(NamedTuple):
    """What one token takes."""

    name: str
    passes: tuple[int, int]
    """Passes of the generator, at least and at most."""
    pairs: int
    """Passes of the evaluator."""
    paper: str


METHODS = (
    Method("RAG", (1, 1), 0, "26.5"),
    Method("CRAG", (1, 1), 1, "27.2"),
    Method("Self-RAG", (1, 5), 0, "26.5 to 132.4"),
    Method("Self-CRAG", (1, 3), 1, "27.2 to 80.2"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=1870, help="of a prompt with its passages")
    given = parser.parse_args()
    generator, evaluator = generator_flops(given.tokens), evaluator_flops(PAIR)
    print(f"generator, {given.tokens:,} tokens: {generator / _TERA:.1f} TFLOPs")
    print(f"evaluator, {PAIR} tokens: {evaluator / _TERA:.2f} TFLOPs\n")
    rows = [[one.name, told(one, generator, evaluator), one.paper] for one in METHODS]
    print(table(["TFLOPs a token", "counted", "paper"], rows))


def told(method: Method, generator: int, evaluator: int) -> str:
    """Return the operations of a method in TFLOPs, as the paper writes them."""
    least, most = (
        f"{(passes * generator + method.pairs * evaluator) / _TERA:.1f}" for passes in method.passes
    )
    return least if least == most else f"{least} to {most}"


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
