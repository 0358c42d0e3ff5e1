"""Measure indexes of growing size: time, memory, disk, and how long questions take.

    python papers/measurements/large_index.py CORPUS.jsonl 20000 100000 [--encoder] [--keep FOLDER]

The texts are made of the corpus: each joins five sentences drawn at random, no two are the same,
and each becomes one chunk. Without `--encoder` their vectors are stand-ins, random ones of length 1
that depend on the text alone, so that the store and the index of words are measured, and the
encoder is not: its time is measured on a sample and extrapolated. Each size runs in a process of
its own. With `--keep`, texts and index stay in a folder for each size, and a run that was stopped
goes on; `progress.jsonl` there tells how the time grew, and in which parts of it.
"""

import argparse
import hashlib
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
from langchain_core.embeddings import Embeddings
from timing import MEBIBYTE, alone, peak_memory, processor_time

from crag.finding import FindBy
from crag.index import DocumentIndex, index_paths
from crag.models.encoder import packaged_encoder
from crag.papers.training.records import read_objects
from crag.text.sentences import sentences_of

DIMENSION = 384
SENTENCES = 5
SAMPLE = 1000
QUESTIONS = 100
FIRST = 10
WAYS: Sequence[FindBy] = get_args(FindBy)


class StandIns(Embeddings):
    """Random unit vectors, the same for the same text: they say nothing about its meaning."""

    name = "stand-in-vectors"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text."""
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
        vector = np.random.default_rng(seed).standard_normal(DIMENSION)
        unit: list[float] = (vector / np.linalg.norm(vector)).tolist()
        return unit


class Measured(NamedTuple):
    """One size."""

    chunks: int
    indexing: float
    """Seconds."""
    cpu: float
    """Seconds of processor time, of all threads and of the process that reads the file."""
    again: float
    """Seconds of processor time of a second run that finds nothing changed."""
    peak: float
    """Resident memory at most, in MiB."""
    vectors: float
    """MiB on disk, with texts and metadata."""
    words: float
    """MiB on disk."""
    opening: float
    """Seconds until the first question is answered after opening."""
    questions: Mapping[FindBy, tuple[float, float]]
    """Median and 95th percentile of the seconds of processor time of a question, by the way of
    finding; that of embedding it with stand-ins is next to nothing."""


def texts_of(corpus: Path, number: int) -> Iterator[dict[str, str]]:
    """Yield `number` records whose texts are all different."""
    records = read_objects(corpus)
    sentences = [one for record in records for one in sentences_of(record["text"])]
    draw, seen = random.Random(17), set[tuple[int, ...]]()  # noqa: S311
    while len(seen) < number:
        chosen = tuple(draw.sample(range(len(sentences)), SENTENCES))
        if chosen not in seen:
            seen.add(chosen)
            text = " ".join(sentences[index] for index in chosen)
            yield {"id": str(len(seen)), "title": draw.choice(records)["title"], "text": text}


def questions_of(corpus: Path) -> list[str]:
    """Return questions as people ask them: a rare name between common words."""
    titles = [record["title"] for record in read_objects(corpus)]
    chosen = random.Random(18).sample(titles, QUESTIONS)  # noqa: S311
    return [f"When and where was {title} born, and what is it known for?" for title in chosen]


def measure(corpus: Path, number: int, keep: Path | None, *, encoder: bool) -> Measured:
    """Index `number` texts, index them again, and ask."""
    embeddings: Embeddings = packaged_encoder() if encoder else StandIns()
    embeddings.embed_query("The model loads before the clock starts.")
    questions = questions_of(corpus)
    with nullcontext(keep / str(number)) if keep else tempfile.TemporaryDirectory() as place:
        file, folder = Path(place, "texts.jsonl"), Path(place, "index")
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.with_suffix(".new").open("w", encoding="utf-8") as written:
                written.writelines(json.dumps(one) + "\n" for one in texts_of(corpus, number))
            file.with_suffix(".new").rename(file)
        indexing, cpu, peak = _indexed(file, folder, embeddings)
        started = processor_time()
        with DocumentIndex(folder, embeddings) as index:
            index_paths([file], index)
        again = processor_time() - started
        sizes = {one: one.stat().st_size for one in folder.rglob("*") if one.is_file()}
        words = sum(size for one, size in sizes.items() if one.name.startswith("words"))
        with DocumentIndex(folder, embeddings) as index:
            started = time.monotonic()
            index.search(questions[0], FIRST)
            opening = time.monotonic() - started
            asked = {way: _asked(index, questions, way) for way in WAYS}
            chunks = index.count()
        peak = max(peak, peak_memory())
    total = sum(sizes.values())
    return Measured(
        chunks,
        indexing,
        cpu,
        again,
        peak,
        (total - words) / MEBIBYTE,
        words / MEBIBYTE,
        opening,
        asked,
    )


def _indexed(file: Path, folder: Path, embeddings: Embeddings) -> tuple[float, float, float]:
    """Return seconds, those of the processor and the peak of memory, of all attempts together."""
    progress = file.with_name("progress.jsonl")
    earlier = list(read_objects(progress)) if progress.exists() else []
    if earlier and earlier[-1]["done"] == earlier[-1]["total"]:
        attempts = {one["attempt"]: one for one in earlier}.values()
        total = [sum(one[name] for one in attempts) for name in ("seconds", "cpu")]
        return total[0], total[1], max(one["peak"] for one in attempts)
    attempt = earlier[-1]["attempt"] + 1 if earlier else 0
    started, started_cpu = time.monotonic(), processor_time()
    with progress.open("a", encoding="utf-8") as log, DocumentIndex(folder, embeddings) as index:

        def tell(done: int, total: int) -> None:
            row = {"attempt": attempt, "done": done, "total": total}
            row |= {"seconds": round(time.monotonic() - started, 1)}
            row |= {"cpu": round(processor_time() - started_cpu, 1), "peak": round(peak_memory())}
            log.write(json.dumps(row) + "\n")
            log.flush()

        told, most = 0, 0

        def progressed(done: int, number: int | None, _: str) -> None:
            nonlocal told, most
            most = total = number or most
            if done >= told + max(total // 100, 1000) and done < total:
                told = done
                tell(done, total)

        index_paths([file], index, progress=progressed)
        tell(most, most)
    return _indexed(file, folder, embeddings)


def _asked(index: DocumentIndex, questions: Sequence[str], way: FindBy) -> tuple[float, float]:
    seconds = []
    for question in questions:
        started = time.process_time()
        found = index.search(question, FIRST, by=way)
        seconds.append(time.process_time() - started)
        assert len(found) == FIRST
    return statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]


def encoder_time(corpus: Path) -> float:
    """Return the seconds of processor time in which the packaged encoder embeds one text."""
    texts = [one["text"] for one in islice(texts_of(corpus, SAMPLE), SAMPLE)]
    encoder = packaged_encoder()
    encoder.embed_query("The model loads before the clock starts.")
    started = time.process_time()
    encoder.embed_documents(texts)
    return (time.process_time() - started) / SAMPLE


def main() -> None:
    """Print a row for each size as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="JSONL with text and title on each line")
    parser.add_argument("sizes", type=int, nargs="+", help="numbers of chunks")
    parser.add_argument("--encoder", action="store_true", help="embed with the packaged encoder")
    parser.add_argument("--keep", type=Path, help="folder for the indexes, to go on after a stop")
    asked = parser.parse_args()
    encoder = encoder_time(asked.corpus)
    print(
        f"The encoder takes {1000 * encoder:.0f} ms of processor time a text ({SAMPLE} measured)."
    )
    print("Vectors: " + ("of the encoder." if asked.encoder else "stand-ins, random."))
    ways = " | ".join(f"{way}: median, 95 %" for way in WAYS)
    print(
        "| chunks | indexing | CPU | encoder, extrapolated: CPU | again | peak | vectors | words "
        f"| opening | {ways} |"
    )
    print("|---" * (9 + len(WAYS)) + "|", flush=True)
    for size in asked.sizes:
        row = alone(measure, asked.corpus, size, asked.keep, encoder=asked.encoder)
        times = " | ".join(
            f"{1000 * median:.0f} ms, {1000 * high:.0f} ms"
            for median, high in row.questions.values()
        )
        print(
            f"| {row.chunks:,} | {row.indexing:.0f} s | {row.cpu:.0f} s "
            f"| {row.chunks * encoder / 60:.0f} min | {row.again:.0f} s "
            f"| {row.peak:,.0f} MiB | {row.vectors:,.0f} MiB "
            f"| {row.words:,.0f} MiB | {row.opening:.1f} s | {times} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
