"""The speed of the embedded evaluator as shipped, and of the same weights in other engines."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from evaluator_models import shortened, without_blend, write_bert
from evaluator_timing import CORES, Asked, alternated, questions, table

from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.evaluators.torch_pairs import TorchPairs
from crag.models.minilm import packaged_model

LENGTHS = (128, 256)
PAIRS, BATCH = 64, 32
SHIPPED, PLAIN = "as shipped (ONNX Runtime)", "without lexical features"
FLOAT, HALF = "torch, float32", "torch, bfloat16"
REFERENCE = "CrossEncoder.predict"
Way = Callable[[], Sequence[float]]


def embedded(asked: Asked) -> str:
    """Compare pairs per second at two lengths with sentence-transformers' own class."""
    import torch

    torch.set_num_threads(CORES)
    asking = questions(asked.data)
    rates: dict[str, list[str]] = {}
    apart: dict[str, float] = {}
    for tokens in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            pair = cut(asking, tokens, PAIRS // 2 if asked.quick else PAIRS)
            ways = engines(asked.default, Path(folder), tokens, *pair)
            apart = differences(ways)
            found = alternated(ways, asked.seconds)
        for name, seconds in found.items():
            rate = f"{len(pair[1]) / seconds:.1f} ({found[REFERENCE] / seconds:.2f})"
            rates.setdefault(name, []).append(rate)
    rows = [[name, *cells, f"{apart[name]:.4f}"] for name, cells in rates.items()]
    heads = ["", *(f"{n} tokens" for n in LENGTHS), "largest difference of a score"]
    return (
        f"The embedded evaluator: pairs/s, and how many times as fast as {REFERENCE}; one "
        f"question with {PAIRS // 2 if asked.quick else PAIRS} texts, batches of {BATCH}, "
        f"median of turns. Scores are compared with {PLAIN}.\n\n{table(heads, rows)}"
    )


def cut(asking: Sequence[tuple[str, list[str]]], tokens: int, count: int) -> tuple[str, list[str]]:
    """Return a question with texts that fill an input of `tokens` with it, made of real ones."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str((packaged_model() or Path()) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(tokens, strategy="only_second")
    question, texts = asking[0][0], []
    for _, found in asking[:count]:
        whole = " ".join(found)
        texts.append(whole[: tokenizer.encode(question, whole).offsets[-2][1]])
    return question, texts


def engines(
    artefact: Path, folder: Path, tokens: int, question: str, texts: Sequence[str]
) -> dict[str, Way]:
    """Return a call for each engine that scores all texts; all cut at `tokens`."""
    from sentence_transformers import CrossEncoder

    for dtype in ("float32", "bfloat16"):
        write_bert(artefact, folder / dtype, dtype)
    copy = shortened(artefact, folder / "shipped", tokens)
    plain = without_blend(copy, folder / "plain")
    shipped = CrossEncoderEvaluator.changed(copy)
    single = CrossEncoderEvaluator(TorchPairs(folder / "float32", max_length=tokens, device="cpu"))
    half = CrossEncoderEvaluator(TorchPairs(folder / "bfloat16", max_length=tokens, device="cpu"))
    reference: Any = CrossEncoder(str(folder / "float32"), max_length=tokens, device="cpu")
    pairs = [(question, text) for text in texts]

    def predicted() -> Sequence[float]:
        probabilities = reference.predict(pairs, batch_size=BATCH, show_progress_bar=False)
        scores: list[float] = (2 * probabilities - 1).tolist()
        return scores

    return {
        SHIPPED: lambda: shipped.score(question, texts),
        PLAIN: lambda: plain.score(question, texts),
        FLOAT: lambda: single.score(question, texts),
        HALF: lambda: half.score(question, texts),
        REFERENCE: predicted,
    }


def differences(ways: dict[str, Way]) -> dict[str, float]:
    """Return how far each engine's scores lie from those without lexical features."""
    plain = np.array(ways[PLAIN]())
    return {name: float(np.abs(np.array(call()) - plain).max()) for name, call in ways.items()}
