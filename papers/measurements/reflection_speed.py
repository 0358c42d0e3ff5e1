"""Measure how fast a model in this process reflects: passages in one batch against one by one.

    python papers/measurements/reflection_speed.py [--hidden 768] [--layers 12] [--passages 10]
        [--tokens 16] [--seconds 20] [--only cpu|cuda]

Both ways take turns in one run. Weights are random, which takes as long as trained ones; the
vocabulary has the 32,016 tokens of the released model. Where there is CUDA, the short form is timed
for the shape of Llama 2 7B in bf16, and compared with the time that reading its weights and its
cache from memory takes alone, at the bandwidth that a copy reaches in the same run.
"""

import argparse
import logging
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

from evaluator_timing import alternated, hold_to_cores, table, timed

from crag.parts import Candidate, Passage, Prefix, SegmentLimits, continuations
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection_tokens import PAD, TOKENS

VOCABULARY = 32_000
PREFIX = Prefix("w1 w2 w3 w4 w5 w6 w7 w8")
WORDS = 100
"""Of each passage, as in the paper; each is one token here."""
ANSWER = 100
"""Tokens of an answer on CUDA: what the paper's short form allows."""
ROUNDS = 5


def main() -> None:
    """Run what fits this machine and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=16, help="to generate for each passage")
    parser.add_argument("--seconds", type=float, default=20, help="for each shape on the CPU")
    parser.add_argument("--only", choices=("cpu", "cuda"))
    given = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    import torch

    if given.only != "cuda":
        hold_to_cores()
        print(on_cpu([(64, 2), (given.hidden, given.layers)], given), flush=True)
    if given.only != "cpu" and torch.cuda.is_available():
        print(f"\n{on_cuda(given.passages)}", flush=True)
    elif given.only == "cuda":
        parser.error("there is no CUDA device here")


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


def on_cuda(count: int) -> str:
    """Return the table of seconds per question for the shape of Llama 2 7B in bf16."""
    import torch

    device = torch.device("cuda:0")
    with device:
        model = _model(4096, 32, dtype=torch.bfloat16)
    backend = TransformersReflection.around(model, _tokenizer(), batch_size=count)
    ask = partial(_short_form, backend, _passages(count), ANSWER)
    generated = max(candidate.tokens for candidate in ask())
    seconds = statistics.median(timed(ask) for _ in range(ROUNDS))
    bandwidth = _bandwidth(device)
    least = _bytes_read(model, count, generated) / bandwidth
    heads = ["Device", "Passages", "Tokens", "Seconds per question", "Bandwidth", "Limit", "Share"]
    row = [
        torch.cuda.get_device_name(device),
        str(count),
        str(generated),
        f"{seconds:.2f}",
        f"{bandwidth / 1e12:.2f} TB/s",
        f"{least:.2f} s",
        f"{least / seconds:.0%}",
    ]
    return f"Short form, Llama 2 7B's shape in bf16.\n\n{table(heads, [row])}"


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


def _short_form(
    backend: TransformersReflection, passages: Sequence[Passage], tokens: int
) -> list[Candidate]:
    backend.decide([PREFIX])
    limits = SegmentLimits(tokens, whole_answer=True)
    return backend.candidates(continuations(PREFIX, passages), limits)


def _passages(count: int) -> list[Passage]:
    return [
        Passage(f"w{n}", " ".join(f"w{(n * WORDS + i) % 999}" for i in range(WORDS - n)))
        for n in range(count)
    ]


def _model(hidden: int, layers: int, **options: Any) -> Any:
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
    return AutoModelForCausalLM.from_config(config, **options)  # type: ignore[no-untyped-call]


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


def _bandwidth(device: Any) -> float:
    """Return the bytes per second that a copy within the device's memory reads and writes."""
    import torch

    source = torch.empty(1 << 31, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)
        torch.cuda.synchronize(device)

    copy()
    return 2 * source.numel() / min(timed(copy) for _ in range(ROUNDS))


def _bytes_read(model: Any, rows: int, tokens: int) -> float:
    """Return what a question must read: the weights at each step, and the cache of all rows."""
    config = model.config
    # The embedding is looked up, not read whole; the decision is one more step.
    weights = sum(w.nbytes for w in model.parameters()) - model.get_input_embeddings().weight.nbytes
    per_token = 2 * config.num_hidden_layers * config.hidden_size * 2
    kept = sum(WORDS + step for step in range(tokens))
    return float((tokens + 1) * weights + rows * kept * per_token)


if __name__ == "__main__":
    main()
