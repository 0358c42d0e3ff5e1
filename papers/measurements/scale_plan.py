r"""How many parts a number of documents and questions needs, and what they cost in a month.

    python papers/measurements/scale_plan.py [--documents 10000000] [--questions 1000] \
        [--set NAME=VALUE …]

Everything is a product of a measured figure, an assumption and a wish: `Measured` says which
benchmark each figure is of, `Assumed` what to replace by your own. Nothing was run at this size:
see docs/guide/scale.md, which has the table that this program prints, for what that leaves out.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from typing import NamedTuple

MONTH = 30 * 24 * 3600
"""Seconds."""
HOURS = MONTH / 3600
SIZES = ((1_000, 0.02), (100_000, 2.0), (1_000_000, 50.0), (10_000_000, 1_000.0))
"""Documents and questions a second: a laptop, one server, several, many."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Figures of papers/README.md, on cores of x86-64."""

    chunks_a_core_second: float = 42.9
    """`crag index`, ONNX Runtime, six sets of documentation."""
    chunk_bytes: float = (687 + 127) * 2**20 / 101_437
    """Vectors, texts, metadata and words on disk, at 101,437 chunks."""
    vector_bytes: float = 4 * 384
    """In memory: the numbers of the packaged encoder."""
    evaluator_seconds: float = 0.29
    """Processor time to read ten passages, with the queue, 8 to 50 questions at once."""
    server_seconds: float = 0.040
    """Processor time of the server for a question, with a model and an evaluator that cost none."""
    postgres_seconds: float = 0.017
    """The same of PostgreSQL: checkpoints, stream, queue."""
    not_correct: float = 0.30
    """Share of questions judged Ambiguous or Incorrect: each asks the model twice, and the web."""
    knowledge_words: float = 294
    """Words of knowledge that the model reads, after correction."""


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What is not known here: replace it by your own."""

    chunks_a_document: float = 5
    index_hours: float = 24
    """Within which all documents are to be indexed."""
    busy: float = 0.6
    """Share of a core that is planned; the rest is for peaks."""
    graph_bytes: float = 300
    """Memory of the vector graph for each chunk, besides the vector."""
    tokens_a_word: float = 1.4
    prompt_tokens: float = 250
    answer_tokens: float = 120
    machine_cores: float = 16
    core_hour: float = 0.04
    """Price of a core with 4 GB of memory for an hour."""
    memory_month: float = 3.0
    """Price of a GB of memory beyond that."""
    disk_month: float = 0.1
    """Price of a GB."""
    million_read: float = 0.15
    """Price of a million tokens that the model reads."""
    million_written: float = 0.6
    thousand_searches: float = 5.0
    """Price of a thousand searches of the web; 0 for a SearXNG of one's own."""


class Row(NamedTuple):
    """One line of a plan."""

    part: str
    amount: float
    unit: str
    cost: float
    """A month; for indexing, once."""


def plan(
    documents: float,
    questions: float,
    measured: Measured | None = None,
    assumed: Assumed | None = None,
) -> list[Row]:
    """Return what a number of documents and of questions a second needs."""
    known, guess = measured or Measured(), assumed or Assumed()
    chunks = documents * guess.chunks_a_document
    indexing = chunks / known.chunks_a_core_second / 3600

    def cores(part: str, seconds: float) -> Row:
        amount = questions * seconds / guess.busy
        return Row(part, amount, "cores", amount * guess.core_hour * HOURS)

    disk, memory = (
        chunks * each / 1e9 for each in (known.chunk_bytes, known.vector_bytes + guess.graph_bytes)
    )
    calls = questions * (1 + known.not_correct)
    read = calls * (known.knowledge_words * guess.tokens_a_word + guess.prompt_tokens)
    written = calls * guess.answer_tokens
    tokens = read * guess.million_read + written * guess.million_written
    searches = questions * known.not_correct
    return [
        Row("chunks", chunks, "", 0),
        Row("indexing, once", indexing, "core hours", indexing * guess.core_hour),
        Row("workers to index in time", indexing / guess.index_hours, "cores", 0),
        Row("index on disk", disk, "GB", disk * guess.disk_month),
        Row("vectors in memory", memory, "GB", memory * guess.memory_month),
        cores("evaluator", known.evaluator_seconds),
        cores("server processes", known.server_seconds),
        cores("PostgreSQL, threads and runs", known.postgres_seconds),
        Row("chat model", read + written, "tokens/s", tokens / 1e6 * MONTH),
        Row("web searches", searches, "/s", searches * guess.thousand_searches / 1000 * MONTH),
    ]


def machines(rows: Sequence[Row], assumed: Assumed | None = None) -> int:
    """Return how many machines the cores that answer questions fill, at least one."""
    cores = sum(row.amount for row in rows if row.unit == "cores" and row.cost)
    return max(1, ceil(cores / (assumed or Assumed()).machine_cores))


def table(sizes: Sequence[tuple[float, float]] = SIZES, assumed: Assumed | None = None) -> str:
    """Return the plans for several sizes as a table, with the costs of a month."""
    plans = [plan(documents, questions, assumed=assumed) for documents, questions in sizes]
    heads = [f"{documents:,.0f} documents, {each:,g} questions/s" for documents, each in sizes]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---:|" * len(sizes)]
    for rows in zip(*plans, strict=True):
        cells = [
            f"{_told(row.amount)} {row.unit}".strip()
            + (f", {_told(row.cost)}" if row.cost >= 1 else "")
            for row in rows
        ]
        lines.append(f"| {rows[0].part} | {' | '.join(cells)} |")
    counts = [_told(machines(rows, assumed)) for rows in plans]
    lines.append(f"| machines for the cores of questions | {' | '.join(counts)} |")
    sums = [sum(row.cost for row in rows if "once" not in row.part) for rows in plans]
    own = [
        total - sum(row.cost for row in rows if row.part in {"chat model", "web searches"})
        for total, rows in zip(sums, plans, strict=True)
    ]
    lines.append(f"| a month, without model and web | {' | '.join(map(_told, own))} |")
    lines.append(f"| a month | {' | '.join(map(_told, sums))} |")
    return "\n".join(lines) + "\n"


def _told(number: float) -> str:
    """Return a number with two digits that count; more would say more than is known."""
    if number == 0:
        return "0"
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"  # noqa: PLR2004 - two digits


def main() -> None:
    """Print the table for the sizes of the guide, or for one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=float)
    parser.add_argument("--questions", type=float, help="a second")
    names = ", ".join(one.name for one in fields(Assumed))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=names)
    given = parser.parse_args()
    assumed = Assumed()
    for assignment in given.set:
        name, _, value = assignment.partition("=")
        if name not in {one.name for one in fields(Assumed)}:
            parser.error(f"--set {assignment}: there are {names}")
        assumed = replace(assumed, **{name: float(value)})
    sizes: Sequence[tuple[float, float]] = SIZES
    if given.documents or given.questions:
        sizes = ((given.documents or SIZES[-1][0], given.questions or SIZES[-1][1]),)
    print(table(sizes, assumed), end="")


if __name__ == "__main__":
    main()
