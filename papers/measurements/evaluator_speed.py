"""Measure the speed of the evaluators side by side: start-up, growth, the embedded one, T5.

    python papers/measurements/evaluator_speed.py DATA [--t5-shape base] [--seconds 30]
        [--default FOLDER] [--only SECTION…]

DATA is a folder with evaluator/dev_bio.jsonl: questions with ten texts each. What is compared takes
turns (A, B, A, B) on two cores; each section runs in a process of its own, so that its memory is
its own. T5 has random weights, which take as long as trained ones, and a tokenizer trained on the
texts, which splits them much as T5's does.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import CORES, MAXRSS, MEBIBYTE, alone, alternated, hold_to_cores, peak_memory, timed

from crag.correction.scoring import joined, with_title
from crag.evaluators import T5Evaluator, load_evaluator
from crag.evaluators.checkpoint import load_tokenizer
from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.evaluators.t5 import MAX_LENGTH
from crag.evaluators.torch_pairs import TorchPairs
from crag.models.lexical import LEXICAL
from crag.models.minilm import official_weights, packaged_model
from crag.models.weights import DELTA, read_tensors, restored
from crag.papers.experiments.report import table
from crag.papers.training.records import read_objects

SIZES = (1, 10, 100, 1000)
ROUNDS = 5
DOCS = Path(__file__).parents[2] / "docs"
QUESTION = "What is a knowledge strip?"
TORCH = "importing torch and transformers alone"
LENGTHS = (128, 256)
PAIRS, BATCH = 64, 32
SHIPPED, PLAIN = "as shipped (ONNX Runtime)", "without lexical features"
FLOAT, HALF = "torch, float32", "torch, bfloat16"
REFERENCE = "CrossEncoder.predict"
Way = Callable[[], Sequence[float]]


VOCABULARY, PIECES = 32_128, 8_000
_MATRIX = 2048


class Asked(NamedTuple):
    """What the command line asks for."""

    data: Path
    default: Path
    """Folder of the embedded evaluator."""
    shape: str
    seconds: float
    """For each comparison, more or less."""


class Cost(NamedTuple):
    """What a process took."""

    wall: float
    cpu: float
    memory: float
    """Resident at most, in MiB."""


class Shape(NamedTuple):
    """The sizes of a T5 that its speed depends on."""

    width: int
    inner: int
    """Of the feed-forward layers."""
    heads: int
    """Of 64 numbers each."""
    layers: int
    """Of the encoder, and again of the decoder."""

    def operations(self, tokens: int) -> float:
        """Return the floating-point operations for one pair of so many tokens.

        With d the width, i = 64 · heads, f the inner width and n the tokens, a layer of attention
        takes 8 n d i for its four projections and 4 n² i for scores and values, the feed-forward
        4 n d f. An encoder layer has one attention, a decoder layer two, and the decoder reads all
        n tokens: layers · (24 n d i + 12 n² i + 8 n d f). Norms, softmax and head are left out.
        """
        n, d, i, f = tokens, self.width, 64 * self.heads, self.inner
        return float(self.layers * (24 * n * d * i + 12 * n * n * i + 8 * n * d * f))


SHAPES = {
    "small": Shape(512, 2048, 8, 6),
    "base": Shape(768, 3072, 12, 12),
    "large": Shape(1024, 4096, 16, 24),
}


def main() -> None:
    """Run the sections and print their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--t5-shape", choices=tuple(SHAPES), default="base")
    parser.add_argument("--seconds", type=float, default=30, help="for each comparison")
    parser.add_argument("--default", type=Path, help="folder of the embedded evaluator")
    parser.add_argument("--only", choices=tuple(SECTIONS), nargs="+", default=list(SECTIONS))
    given = parser.parse_args()
    shipped = Path(str(files("crag.evaluators").joinpath("cross_encoder")))
    asked = Asked(
        given.data.resolve(), (given.default or shipped).resolve(), given.t5_shape, given.seconds
    )
    hold_to_cores()
    print(f"Cores: {CORES}.")
    for name in given.only:
        print(f"\n{SECTIONS[name](asked)}", flush=True)


def questions(data: Path) -> list[tuple[str, list[str]]]:
    """Return the Biography questions, each with its ten titled texts."""
    groups: dict[str, list[str]] = {}
    for row in read_objects(data / "evaluator/dev_bio.jsonl"):
        groups.setdefault(row["question"], []).append(with_title(row["title"], row["text"]))
    return list(groups.items())


def growth(asked: Asked) -> str:
    """Show time and memory for more and more texts of one question."""
    rows = []
    for size in SIZES:
        seconds, before, after = alone(grown, asked, size)
        rate = f"{1000 * seconds / size:.1f} ms"
        rows.append([f"{size:,}", f"{seconds:.2f}", rate, f"{before:.0f}", f"{after - before:.0f}"])
    heads = ["texts", "seconds", "per text", "MiB with one text scored", "MiB more at most"]
    return f"Growth: texts of one question, embedded evaluator.\n\n{table(heads, rows)}"


def grown(asked: Asked, size: int) -> tuple[float, float, float]:
    """Return the seconds for `size` texts, and the peak of memory in MiB before and after."""
    asking = questions(asked.data)
    texts = [text for _, found in asking for text in found][:size]
    evaluator = load_evaluator(str(asked.default))
    evaluator.score(asking[0][0], texts[:1])
    before, started = peak_memory(), time.perf_counter()
    evaluator.score(asking[0][0], texts)
    return time.perf_counter() - started, before, peak_memory()


def startup(asked: Asked) -> str:
    """Show what `crag ask` costs from the first instruction to the last."""
    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder, "index"))
        crag = [sys.executable, "-c", "from crag.papers.commands import main; main()"]
        started([*crag, "index", str(DOCS), "--index", index], {}, folder)
        ask = [*crag, "ask", QUESTION, "--index", index]
        commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
            "`crag ask`, default": (ask, {"CRAG_EVALUATOR": str(asked.default)}),
            "`crag ask`, cosine": (ask, {"CRAG_EVALUATOR": "cosine"}),
            TORCH: ([sys.executable, "-c", "import torch, transformers"], {}),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                costs[name].append(started(*command, folder))
    rows = [[name, *(f"{statistics.median(column):.2f}" for column in zip(*found, strict=True))]
            for name, found in costs.items()]  # fmt: skip
    heads = ["", "wall seconds", "CPU seconds", "peak MiB"]
    return f"Start-up: median of {len(costs[TORCH])}, in turns.\n\n{table(heads, rows)}"


def started(command: Sequence[str], variables: Mapping[str, str], folder: str) -> Cost:
    """Run a command in `folder`, without keys, and return what it took."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CRAG_", "OPENAI_", "TAVILY_"))
    }
    begun = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=folder, env=kept | dict(variables), stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - begun, cpu, usage.ru_maxrss * MAXRSS / MEBIBYTE)


def embedded(asked: Asked) -> str:
    """Compare pairs per second at two lengths with sentence-transformers' own class."""
    import torch

    torch.set_num_threads(CORES)
    asking = questions(asked.data)
    rates: dict[str, list[str]] = {}
    apart: dict[str, float] = {}
    for tokens in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            pair = cut(asking, tokens, PAIRS)
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
        f"question with {PAIRS} texts, batches of {BATCH}, "
        f"median of turns. Scores are compared with {PLAIN}.\n\n{table(heads, rows)}"
    )


def cut(asking: Sequence[tuple[str, list[str]]], tokens: int, count: int) -> tuple[str, list[str]]:
    """Return a question with texts that fill an input of `tokens` with it, made of real ones."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_model() / "tokenizer.json"))
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


def write_t5(folder: Path, shape: Shape, texts: Iterable[str]) -> None:
    """Write random weights in the paper's format, with a tokenizer trained on `texts`.

    The embedding is as large as T5's own; the tokenizer knows a quarter as many pieces.
    """
    import torch
    from sentencepiece import SentencePieceTrainer
    from transformers import T5Config, T5ForSequenceClassification, T5Tokenizer

    with (folder / "spiece.model").open("wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=file,
            vocab_size=PIECES,
            hard_vocab_limit=False,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            minloglevel=2,
        )
    torch.manual_seed(0)
    sizes = {
        "d_model": shape.width,
        "d_ff": shape.inner,
        "num_heads": shape.heads,
        "num_layers": shape.layers,
    }
    head = {"num_labels": 1, "decoder_start_token_id": 0}
    config = T5Config.from_dict({"vocab_size": VOCABULARY} | sizes | head)
    T5ForSequenceClassification(config).save_pretrained(folder)
    T5Tokenizer.from_pretrained(folder).save_pretrained(folder)


def without_blend(artefact: Path, folder: Path) -> CrossEncoderEvaluator:
    """Return the embedded evaluator without its lexical features."""
    shutil.copytree(artefact, folder, ignore=shutil.ignore_patterns(LEXICAL))
    return CrossEncoderEvaluator.changed(folder)


def write_bert(artefact: Path, folder: Path, dtype: str) -> None:
    """Write the same weights as transformers and sentence-transformers read them."""
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    weights = restored(official_weights(), read_tensors(artefact / DELTA))
    base = packaged_model()
    config = AutoConfig.from_pretrained(base, num_labels=1)
    model = BertForSequenceClassification(config)
    model.load_state_dict(
        {
            name if name.startswith("classifier.") else f"bert.{name}": torch.tensor(values)
            for name, values in weights.items()
        }
    )
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)


def shortened(artefact: Path, folder: Path, tokens: int) -> Path:
    """Copy the embedded evaluator, so that it cuts at `tokens`."""
    shutil.copytree(artefact, folder)
    card = json.loads((folder / "card.json").read_text("utf-8"))
    (folder / "card.json").write_text(json.dumps(card | {"max_length": tokens}), "utf-8")
    return folder


def peak_of_products() -> float:
    """Return the operations per second of a large product of matrices: the best of ten."""
    import torch

    left = torch.rand(_MATRIX, _MATRIX)
    seconds = min(timed(lambda: left @ left) for _ in range(10))
    return 2 * float(_MATRIX) ** 3 / seconds


def t5(asked: Asked) -> str:
    """Compare T5 in batches with the published loop: one pair at a time, padded to 512 tokens."""
    import torch

    torch.set_num_threads(CORES)
    asking, shape = questions(asked.data), SHAPES[asked.shape]
    spent, best = [0.0, 0.0], 0.0
    pairs: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_t5(folder, shape, [text for _, texts in asking for text in texts])
        ways = T5Evaluator(folder), T5Evaluator(folder, compat="official")
        for way in ways:  # Loads the weights.
            way.score(asking[-1][0], asking[-1][1][:1])
        for question, texts in asking:
            best = max(best, peak_of_products())
            for place, way in enumerate(ways):
                spent[place] += timed(lambda: way.score(question, texts))  # noqa: B023 - at once
            pairs += [(question, text) for text in texts]
            if sum(spent) >= 2 * asked.seconds:
                break
        lengths = token_counts(folder, pairs)
    return _t5_report(asked.shape, lengths, spent, best)


def token_counts(folder: Path, pairs: Sequence[tuple[str, str]]) -> list[int]:
    """Return the tokens of each pair, of which no more than 512 are read."""
    tokenizer = load_tokenizer(folder)
    return [min(len(tokenizer(joined(*pair)).input_ids), MAX_LENGTH) for pair in pairs]


def _t5_report(name: str, lengths: Sequence[int], spent: Sequence[float], best: float) -> str:
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


def _without_this_process(section: Callable[[Asked], str]) -> Callable[[Asked], str]:
    """Run a section that imports torch in a new process, so that this one stays small.

    The peak of memory of a new process is at least that of the one that starts it.
    """
    return lambda asked: alone(section, asked)


SECTIONS: Mapping[str, Callable[[Asked], str]] = {
    "startup": startup,
    "growth": growth,
    "embedded": _without_this_process(embedded),
    "t5": _without_this_process(t5),
}


if __name__ == "__main__":
    main()
