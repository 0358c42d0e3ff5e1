"""Compare what can run the packaged models: processor time, size of the differences.

    python papers/measurements/inference.py CORPUS.jsonl [--texts N]

CORPUS has a `text` and a `title` in each line. N of its texts, cut to the length of a chunk, are
embedded as `crag index` does it, and read for questions, ten at a time, as the graph does it. The
processor time is that of the whole process on one thread, in one run after another.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crag.correction.scoring import with_title
from crag.evaluators.reader import ReaderEvaluator
from crag.models.encoder import SentenceEncoder
from crag.models.inference import Runtime, use_runtime
from crag.papers.training.records import read_objects
from crag.parts import Passage

QUESTION = "Where does {} come from, and what is it known for?"
LENGTH = 1000
RUNTIMES: tuple[Runtime, ...] = ("onnxruntime", "openvino")
ROUNDS = 3


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--texts", type=int, default=100)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    rows = read_objects(given.corpus)[: given.texts]
    passages = [Passage(row["title"], row["text"][:LENGTH]) for row in rows]
    encoders: dict[Runtime, SentenceEncoder] = {}
    readers: dict[Runtime, ReaderEvaluator] = {}
    for name in RUNTIMES:
        use_runtime(name)
        encoders[name], readers[name] = SentenceEncoder(), ReaderEvaluator.packaged()
        encoders[name].embed_query("Does it load?")
        readers[name].verify()
    print("| | runtime | texts a processor second | largest difference | mean |")
    print("|---|---|---|---|---|")
    compare("embed", {n: partial(embedded, e, passages) for n, e in encoders.items()})
    compare("read", {n: partial(read, r, passages) for n, r in readers.items()})


def embedded(encoder: SentenceEncoder, passages: list[Passage]) -> NDArray[np.float64]:
    """Return the vectors."""
    return np.array(encoder.embed_documents([with_title(p.title, p.text) for p in passages]))


def read(reader: ReaderEvaluator, passages: list[Passage]) -> NDArray[np.float64]:
    """Return the scores of ten passages at a time, for a question about the first of them."""
    scores: list[float] = []
    for at in range(0, len(passages), 10):
        question = QUESTION.format(passages[at].title)
        scores += [one["score"] for one in reader.read(question, passages[at : at + 10])]
    return np.array(scores)


def compare(work: str, runs: dict[Runtime, Callable[[], NDArray[np.float64]]]) -> None:
    """Print a line for each runtime; the rounds take turns, and the fastest counts."""
    times: dict[Runtime, list[float]] = {name: [] for name in runs}
    found: dict[Runtime, NDArray[np.float64]] = {}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.process_time()
            found[name] = run()
            times[name].append(time.process_time() - start)
    for name in runs:
        change = np.abs(found[name] - found[RUNTIMES[0]])
        speed = len(found[name]) / min(times[name])
        print(f"| {work} | {name} | {speed:.1f} | {change.max():.3f} | {change.mean():.4f} |")


if __name__ == "__main__":
    main()
