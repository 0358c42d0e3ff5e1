"""Measure how long the web branch takes: do pages overlap, and does refinement overlap the web?

    python papers/measurements/web_latency.py [--rounds 5] [--documents docs] [--k 20]

A search service (400 ms) and five sites (100, 300, 500, 700 and 900 ms) answer on loopback. The
evaluator, the index of real documents and the page reader are those that `crag ask` uses; the chat
model is a fake that takes no time, since its time would be the same everywhere. What is compared
takes turns, after one round to warm up; the table shows medians.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from slow_services import PAGES, SEARCH, Addresses, services
from timing import alternated

from crag.evaluators import load_evaluator
from crag.graph import build_crag
from crag.index import DocumentIndex, IndexRetriever, index_paths
from crag.models.encoder import packaged_encoder
from crag.nodes.refine import Refine
from crag.nodes.select import Select
from crag.papers.experiments.report import table
from crag.parts import Parts, ReadingLimits
from crag.settings import Settings
from crag.state import Action, State
from crag.testing import FakeChatModel
from crag.web import SearxngSearcher
from crag.web.reader import HttpPageReader

QUESTION = "Which strips of a document does corrective retrieval keep?"
LIMITS = ReadingLimits(20, 8, 10_000_000, 3_000_000, cache_hours=0)
Ways = dict[str, Callable[[], object]]


class Bench(NamedTuple):
    """What is measured."""

    parts: Parts
    k: int
    reader: HttpPageReader
    searcher: SearxngSearcher
    sites: list[str]
    """One page on each of five sites."""
    one_site: list[str]
    """Five pages of the same times on one site."""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=Path, default=Path("docs"))
    parser.add_argument("--k", type=int, default=20, help="documents to grade and refine")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, services() as addresses:
        folder, encoder = Path(name), packaged_encoder()
        with DocumentIndex(folder / "index", encoder) as index:
            index_paths([given.documents], index)
            bench = prepared(addresses, folder, index, given.k)
            print(f"Refinement of {len(asked(bench, 'ambiguous', 0)['internal'])} strips.")
            print(report(alternated(ways(bench), rounds=given.rounds), given.rounds))


def prepared(addresses: Addresses, folder: Path, index: DocumentIndex, k: int) -> Bench:
    """Return what answers questions, and what reads pages."""
    searcher = SearxngSearcher(addresses.search)
    reader = HttpPageReader(allow_loopback=True, cache=folder / "pages.sqlite")
    parts = Parts(
        retriever=IndexRetriever(index),
        evaluator=load_evaluator(),
        model=FakeChatModel(replies=["strips, corrective retrieval", "The relevant ones [1]."]),
        searcher=searcher,
        reader=reader,
    )
    return Bench(parts, k, reader, searcher, addresses.sites, addresses.one_site)


def ways(bench: Bench) -> Ways:
    """Return what is compared, by name."""
    read = bench.reader.read
    state = cast("State", asked(bench, "ambiguous", 0))
    refine, select = Refine(bench.parts.evaluator), Select(bench.parts.evaluator)
    return {
        "search alone": lambda: bench.searcher.search("strips", 5),
        "five pages, one after another": lambda: [read([url], LIMITS) for url in bench.sites],
        "five pages, as we read them": lambda: read(bench.sites, LIMITS),
        f"five pages of one site, {LIMITS.per_site} at a time": lambda: read(
            bench.one_site, LIMITS
        ),
        "refinement alone": lambda: refine.run(state, Settings()),
        "selection alone": lambda: select.run(state, Settings()),
        "Correct": lambda: asked(bench, "correct", 0),
        "Incorrect": lambda: asked(bench, "incorrect", 0),
        "Ambiguous": lambda: asked(bench, "ambiguous", 0),
        "Incorrect, pages in the cache": lambda: asked(bench, "incorrect", 24),
        "Ambiguous, pages in the cache": lambda: asked(bench, "ambiguous", 24),
    }


def asked(bench: Bench, action: Action, cache_hours: float) -> dict[str, Any]:
    """Ask the question with an action given, and check that the run did what is to be measured."""
    patient = Settings(page_seconds=60, max_web_seconds=120)  # The machine may be busy.
    settings = patient.model_copy(update={"only": action, "k": bench.k, "cache_hours": cache_hours})
    state = build_crag(bench.parts).invoke({"question": QUESTION}, context=settings)
    web = 0 if action == "correct" else len(PAGES)
    assert len([page for page in state["pages"] if page["paragraphs"]]) == web, state["events"]
    assert state["usage"]["llm_calls"] == (2 if web else 1)
    return state


def report(seconds: Mapping[str, float], rounds: int) -> str:
    """Return the table, and what it says about overlap."""
    taken = {name: 1000 * each for name, each in seconds.items()}
    pages = ", ".join(f"{page * 1000:.0f}" for page in PAGES)
    serial, ours = taken["five pages, one after another"], taken["five pages, as we read them"]
    overlap = taken["Ambiguous"] - taken["Incorrect"]
    lines = [
        f"Search {SEARCH * 1000:.0f} ms, pages {pages} ms; median of {rounds} rounds.\n",
        table(["", "milliseconds"], [[name, f"{ms:,.0f}"] for name, ms in taken.items()]),
        f"\nAll pages take {ours / (PAGES[-1] * 1000):.2f} times the slowest of them alone,",
        f"and one after another {serial / ours:.1f} times as long as that.",
        f"Ambiguous takes {overlap:+,.0f} ms against Incorrect; if its branches did not overlap",
        f"it would take {taken['refinement alone']:+,.0f} ms.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
