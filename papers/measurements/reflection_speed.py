"""Measure how fast a model in this process reflects: passages in one batch against one by one.

    python papers/measurements/reflection_speed.py [--hidden 768] [--layers 12] [--passages 10]
        [--tokens 16] [--seconds 20]

Both ways take turns in one run. Weights are random, which takes as long as trained ones; the
vocabulary has the 32,016 tokens of the released model.
"""

import argparse
import logging
from collections.abc import Sequence
from typing import Any

from timing import alternated, hold_to_cores

from crag.papers.experiments.report import table
from crag.parts import Candidate, Passage, Prefix, SegmentLimits, continuations
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection_tokens import PAD, TOKENS

VOCABULARY = 32_000
PREFIX = Prefix("w1 w2 w3 w4 w5 w6 w7 w8")
WORDS = 100
"""Of each passage, as in the paper; each is one token here."""


def main() -> None:
    """Measure a small model and one of the given shape, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=16, help="to generate for each passage")
    parser.add_argument("--seconds", type=float, default=20, help="for each shape")
    given = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    hold_to_cores()
    print(on_cpu([(64, 2), (given.hidden, given.layers)], given))


def on_cpu(shapes: Sequence[tuple[int, int]], given: argparse.Namespace) -> str:
    """Return the table of candidates per second, one row for each shape (hidden size, layers)."""
    heads = ["Parameters", "Passages", "Tokens each", "One by one", "Batched", "Batched is faster"]
    rows: list[list[str]] = []
    for hidden, layers in shapes:
        model = _model(hidden, layers)
        size = sum(weight.numel() for weight in model.parameters())
        backend = TransformersReflection.around(model, _tokenizer(), batch_size=given.passages)
        rates = _rates(backend, given.passages, given.tokens, given.seconds)
        rows.append([f"{size / 1e6:,.1f} M", str(given.passages), str(given.tokens), *rates])
    return f"Candidates per second on the CPU, float32.\n\n{table(heads, rows)}"


def _rates(backend: TransformersReflection, count: int, tokens: int, seconds: float) -> list[str]:
    asked = continuations(PREFIX, _passages(count))
    limits = SegmentLimits(tokens, whole_answer=True)

    def one_by_one() -> list[Candidate]:
        return [one for each in asked for one in backend.candidates([each], limits)]

    ways = {
        "one by one": one_by_one,
        "batched": lambda: backend.candidates(asked, limits),
    }
    taken = alternated(ways, seconds)
    alone, together = taken["one by one"], taken["batched"]
    return [f"{count / alone:.2f}", f"{count / together:.2f}", f"{alone / together:.1f} times"]


def _passages(count: int) -> list[Passage]:
    return [
        Passage(f"w{n}", " ".join(f"w{(n * WORDS + i) % 999}" for i in range(WORDS - n)))
        for n in range(count)
    ]


def _model(hidden: int, layers: int) -> Any:
    """Return a Llama with random weights; the feed-forward part is in Llama 2's proportion."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY + len(TOKENS) + 1,
        hidden_size=hidden,
        intermediate_size=hidden * 43 // 16,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 128),
        max_position_embeddings=4096,
    )
    return AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]


def _tokenizer() -> Any:
    """Return a tokenizer of made-up words, with the reflection tokens behind them."""
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(VOCABULARY - 3))]
    inner = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token=words[0]))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.decoder = decoders.Fuse()
    named = dict(zip(("unk_token", "bos_token", "eos_token"), words[:3], strict=True))
    outer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=inner, **named
    )
    outer.add_tokens([*TOKENS, PAD], special_tokens=True)
    return outer


if __name__ == "__main__":
    main()
