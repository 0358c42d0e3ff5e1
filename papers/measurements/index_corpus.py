"""Measure indexing: passages per second against the bare encoder, memory, disk, re-indexing.

Run: python papers/measurements/index_corpus.py CORPUS.jsonl [--limit N]

Each of the two measurements runs in a process of its own, so that its peak of memory is its own.
The encoder is loaded before the clock starts; everything else that indexing does is counted.
"""

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from timing import MEBIBYTE, alone, peak_memory

from crag.documents.loaders import load
from crag.documents.sources import SourceText
from crag.documents.splitting import split, text_to_embed
from crag.index import DocumentIndex, IndexReport, index_paths
from crag.models.encoder import SentenceEncoder
from crag.models.minilm import packaged_model

BATCH = 32


class Measured(NamedTuple):
    """One way of embedding the corpus."""

    chunks: int
    seconds: float
    cpu: float
    """Seconds of processor time, of all threads together; other processes disturb it less."""
    peak: float
    """Resident memory at most, in MiB."""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="JSONL with text, title and id on each line")
    parser.add_argument("--limit", type=int, help="use the first N passages only")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus.jsonl")
        with asked.corpus.open(encoding="utf-8") as lines:
            corpus.write_text("".join(islice(lines, asked.limit)), encoding="utf-8")
        measure(corpus, Path(folder, "index"))


def measure(corpus: Path, index: Path) -> None:
    """Run all measurements on a copy of the corpus, which is changed at the end."""
    passages = len(corpus.read_text("utf-8").splitlines())
    bare = alone(embed, corpus, index)
    full = alone(fill, corpus, index)
    size = sum(file.stat().st_size for file in index.rglob("*") if file.is_file()) / MEBIBYTE
    print(f"{passages} passages, {full.chunks} chunks, batches of {BATCH}\n")
    print("| | passages/s | seconds | CPU seconds | peak memory |\n|---|---|---|---|---|")
    for name, run in (("bare encoder", bare), ("crag index", full)):
        rate = passages / run.seconds
        times = f"{run.seconds:.1f} | {run.cpu:.1f}"
        print(f"| {name} | {rate:.1f} | {times} | {run.peak:.0f} MiB |")
    longer, more = full.seconds / bare.seconds, full.cpu / bare.cpu
    print(
        f"\n`crag index` takes {longer:.3f} times as long as the bare encoder ({more:.3f} in CPU)."
    )
    print(f"Index on disk: {size:.1f} MiB.\n")
    print("| run | added | changed | unchanged | removed | chunks written | seconds |")
    print("|---|---|---|---|---|---|---|")
    tell("again, nothing changed", alone(refill, corpus, index))
    edit(corpus)
    tell("one record changed, one removed", alone(refill, corpus, index))


def embed(corpus: Path, _: Path) -> Measured:
    """Embed the texts of all chunks with sentence-transformers alone, in one call."""
    from sentence_transformers import SentenceTransformer

    documents = (loaded for loaded in load(corpus) if isinstance(loaded, SourceText))
    texts = [text_to_embed(chunk) for document in documents for chunk in split(document, "")]
    model = SentenceTransformer(str(packaged_model()), model_kwargs={"use_safetensors": True})
    model.encode("warm up")
    started, cpu = time.monotonic(), time.process_time()
    model.encode(texts, batch_size=BATCH, normalize_embeddings=True)
    return Measured(
        len(texts), time.monotonic() - started, time.process_time() - cpu, peak_memory()
    )


def fill(corpus: Path, index: Path) -> Measured:
    """Index the corpus into an empty folder."""
    encoder = SentenceEncoder(batch_size=BATCH)
    encoder.embed_query("warm up")
    cpu = time.process_time()
    with DocumentIndex(index, encoder) as target:
        report = index_paths([corpus], target)
    return Measured(report.chunks, report.seconds, time.process_time() - cpu, peak_memory())


def refill(corpus: Path, index: Path) -> IndexReport:
    """Index the corpus into the index that there is."""
    with DocumentIndex(index, SentenceEncoder(batch_size=BATCH)) as target:
        return index_paths([corpus], target)


def edit(corpus: Path) -> None:
    """Remove the first record and change the last."""
    _, *lines, last = corpus.read_text("utf-8").splitlines()
    record = json.loads(last)
    record["text"] += " This sentence is new."
    corpus.write_text("\n".join([*lines, json.dumps(record)]), encoding="utf-8")


def tell(run: str, report: IndexReport) -> None:
    """Print one row."""
    print(
        f"| {run} | {report.added} | {report.changed} | {report.unchanged} | {report.removed} "
        f"| {report.chunks} | {report.seconds:.1f} |"
    )


if __name__ == "__main__":
    main()
