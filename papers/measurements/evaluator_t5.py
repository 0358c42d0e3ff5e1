"""The speed of T5 evaluators: in batches, as the published loop does it, and on a GPU."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evaluator_models import SHAPES, Shape, peak, write_t5
from evaluator_timing import CORES, Asked, questions, table, timed

from crag.correction.scoring import joined
from crag.evaluators import T5Evaluator
from crag.evaluators.checkpoint import load_tokenizer
from crag.evaluators.t5 import MAX_LENGTH

_GPU_BATCH = 128


@contextmanager
def checkpoint(shape: Shape, texts: Sequence[str]) -> Iterator[Path]:
    """Yield a folder with a T5 of random weights."""
    with tempfile.TemporaryDirectory() as folder:
        write_t5(Path(folder), shape, texts)
        yield Path(folder)


def on_cpu(asked: Asked) -> str:
    """Compare T5 in batches with the published loop: one pair at a time, padded to 512 tokens."""
    import torch

    torch.set_num_threads(CORES)
    asking, shape = questions(asked.data), SHAPES[asked.shape]
    spent, best = [0.0, 0.0], 0.0
    pairs: list[tuple[str, str]] = []
    with checkpoint(shape, [text for _, texts in asking for text in texts]) as folder:
        ways = T5Evaluator(folder), T5Evaluator(folder, compat="official")
        for way in ways:  # Loads the weights.
            way.score(asking[-1][0], asking[-1][1][:1])
        for question, texts in asking:
            best = max(best, peak("cpu", "float32"))
            for place, way in enumerate(ways):
                spent[place] += timed(lambda: way.score(question, texts))  # noqa: B023 - at once
            pairs += [(question, text) for text in texts]
            if sum(spent) >= 2 * asked.seconds:
                break
        lengths = token_counts(folder, pairs)
    return _cpu_report(asked.shape, lengths, spent, best)


def token_counts(folder: Path, pairs: Sequence[tuple[str, str]]) -> list[int]:
    """Return the tokens of each pair, of which no more than 512 are read."""
    tokenizer = load_tokenizer(folder)
    return [min(len(tokenizer(joined(*pair)).input_ids), MAX_LENGTH) for pair in pairs]


def _cpu_report(name: str, lengths: Sequence[int], spent: Sequence[float], best: float) -> str:
    shape = SHAPES[name]
    needed = sum(map(shape.operations, lengths))
    padded = len(lengths) * shape.operations(MAX_LENGTH)
    rows = [
        [
            way,
            f"{len(lengths) / seconds:.3f}",
            f"{needed / seconds / best:.0%}",
            f"{done / seconds / best:.0%}" if done else "-",
        ]
        for way, seconds, done in (
            ("T5Evaluator", spent[0], 0.0),
            ('compat="official"', spent[1], padded),
        )
    ]
    heads = ["", "pairs/s", "of the peak, in tokens of the pairs", "with padding"]
    return (
        f"T5-{name}, float32, random weights, {len(lengths)} Biography pairs of "
        f"{sum(lengths) / len(lengths):.0f} tokens (mean), ten texts a question. Operations by "
        "layers · (24 n d i + 12 n² i + 8 n d f). Peak, of a 2048³ product in the same process: "
        f"{best / 1e9:.0f} GFLOP/s.\n\n{table(heads, rows)}\n\n"
        f"T5Evaluator is {spent[1] / spent[0]:.2f} times as fast as the published loop."
    )


def on_gpu(asked: Asked) -> str:
    """Measure T5-large in bfloat16 on the GPU, if there is one."""
    import torch

    if not torch.cuda.is_available():
        return "T5-large on a GPU: left out, there is none."
    shape = SHAPES["base" if asked.quick else "large"]
    asking = questions(asked.data)
    texts = [text for _, found in asking for text in found]
    with checkpoint(shape, texts) as folder:
        lengths = token_counts(folder, [(asking[0][0], text) for text in texts])
        way = T5Evaluator(folder, device="cuda:0", dtype="bfloat16", batch_size=_GPU_BATCH)
        call: Callable[[], object] = lambda: way.score(asking[0][0], texts)  # noqa: E731
        call()
        seconds = sorted(timed(call) for _ in range(5))[2]
    best = peak("cuda", "bfloat16")
    share = sum(map(shape.operations, lengths)) / seconds / best
    name = next(name for name, known in SHAPES.items() if known == shape)
    return (
        f"T5-{name}, bfloat16, {torch.cuda.get_device_name()}, {len(texts)} pairs of "
        f"{sum(lengths) / len(lengths):.0f} tokens (mean), batches of {_GPU_BATCH}: "
        f"{len(texts) / seconds:.0f} pairs/s, {share:.0%} of the peak of {best / 1e12:.0f} TFLOP/s."
    )
