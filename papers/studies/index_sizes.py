"""Measure indexes of growing size with stand-in vectors: time, memory, disk, questions, recall.

    python -m crag.papers.studies.index_sizes 10000 100000 [--location LOCATION]

Texts are words drawn as often as natural ones are; vectors are random, and every tenth is nearly
equal to one of a few. So the store is measured, not the embedding model. Recall is the share of the
exact ten nearest that a question by meaning finds.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.index import DocumentIndex
from crag.tasks import FindBy

DIMENSION, WORDS, VOCABULARY, AT_ONCE, QUESTIONS = 384, 120, 50_000, 1000, 50
WAYS: Sequence[FindBy] = ("words", "meaning", "both")
HEADER = ("chunks", "written", "peak", "disk", "opened", *(f"by {way}" for way in WAYS), "recall")


class StandIns(DeterministicFakeEmbedding):
    """Vectors of questions."""

    name: str = "stand-ins"


def vectors_of(number: int) -> Iterator[np.ndarray]:
    """Yield the same vectors each time, so many at once."""
    draw = np.random.default_rng(1)
    centres = draw.standard_normal((5, DIMENSION), np.float32)
    for _ in range(0, number, AT_ONCE):
        vectors = draw.standard_normal((AT_ONCE, DIMENSION), np.float32)
        vectors[::10] = vectors[::10] / 100 + centres[draw.integers(5, size=AT_ONCE // 10)]
        yield vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def word_of(number: int) -> str:
    """Return a word for a number, of letters alone: numbers do not make texts different."""
    return "z" + "".join(chr(97 + int(digit)) for digit in str(number))


def texts_of(number: int) -> Iterator[list[Document]]:
    """Yield documents of one chunk."""
    draw = np.random.default_rng(2)
    for start in range(0, number, AT_ONCE):
        drawn = draw.zipf(1.1, (AT_ONCE, 3 * WORDS))
        for place, row in enumerate(drawn, start):
            text = " ".join(map(word_of, row[row < VOCABULARY][:WORDS].tolist()))
            known = {"source": f"/data/{place}", "title": "", "chunk": 0, "chunks": 1}
            known |= {"content_hash": str(place), "position": "line 1", "root": "/data"}
            yield [Document(text, id=str(place), metadata=known)]


def measure(size: int, place: str) -> list[str]:
    """Write an index, ask it, and return a row."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        embeddings = StandIns(size=DIMENSION)
        location = place.replace("FOLDER", folder)
        with DocumentIndex(location, embeddings).writing() as writer:
            texts = texts_of(size)
            for vectors in vectors_of(size):
                writer.write([next(texts) for _ in vectors], vectors=vectors)
        seconds = [time.monotonic() - started]
        disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        with DocumentIndex(location, embeddings) as index:
            started = time.monotonic()
            index.search("zf zga zhaa")
            seconds.append(time.monotonic() - started)
            asked = [
                " ".join(map(word_of, (n, 40 * n, 900 * n, 1000 + n)))
                for n in range(1, QUESTIONS + 1)
            ]
            recall = 0.0
            for way in WAYS:
                started = time.process_time()
                found = [index.search(one, 10, by=way) for one in asked]
                seconds.append((time.process_time() - started) / QUESTIONS)
                if way == "meaning":
                    recall = recalled(size, [embeddings.embed_query(one) for one in asked], found)
        cells = [
            f"{size:,}",
            f"{seconds[0]:.0f} s",
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB",
        ]
        cells += [f"{disk / 2**20:,.0f} MiB", f"{seconds[1]:.1f} s"]
        return [*cells, *(f"{1000 * one:.0f} ms" for one in seconds[2:]), f"{recall:.3f}"]


def recalled(size: int, asked: Sequence[Sequence[float]], found: Sequence[list[Document]]) -> float:
    """Return the share of the exact ten nearest that were found."""
    cosines = np.concatenate([part @ np.array(asked, np.float32).T for part in vectors_of(size)])
    least = np.partition(cosines, -10, axis=0)[-10]
    rows = zip(found, cosines.T, least, strict=True)
    hits = sum(row[int(str(one.id))] >= low - 1e-5 for some, row, low in rows for one in some)
    return float(hits / (10 * len(asked)))


def main() -> None:
    """Print a row for each size as soon as it is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sizes", type=int, nargs="+", help="numbers of chunks")
    parser.add_argument(
        "--location", default="FOLDER", help="a store, such as postgresql://HOST/DATABASE"
    )
    given = parser.parse_args()
    print("|", " | ".join(HEADER), "|\n" + "|---" * len(HEADER) + "|", flush=True)
    for size in given.sizes:
        with multiprocessing.get_context("spawn").Pool(1) as alone:  # So that its peak is its own.
            row = alone.apply(measure, (size, given.location))
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
