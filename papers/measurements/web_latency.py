"""Measure how long the web branch takes: do pages overlap, and does refinement overlap the web?

    python papers/measurements/web_latency.py [--rounds 5] [--documents docs] [--k 20]

A search service (400 ms) and five sites (100, 300, 500, 700 and 900 ms) answer on loopback. The
evaluator, the index of real documents and the page reader are those that `crag ask` uses; the chat
model is a fake that takes no time, since its time would be the same everywhere. What is compared
takes turns, after one round to warm up; the table shows medians.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, cast

from evaluator_timing import table, timed

from crag.evaluators import load_evaluator
from crag.graph import build_crag
from crag.models.encoder import packaged_encoder
from crag.nodes.refine import Refine
from crag.nodes.select import Select
from crag.parts import Parts, ReadingLimits
from crag.retrieval import DocumentIndex, IndexRetriever, index_paths
from crag.settings import Settings
from crag.state import Action, State
from crag.testing import FakeChatModel
from crag.web import SearxngSearcher
from crag.web.reader import HttpPageReader

SEARCH, PAGES = 0.4, (0.1, 0.3, 0.5, 0.7, 0.9)
"""Seconds."""
QUESTION = "Which strips of a document does corrective retrieval keep?"
LIMITS = ReadingLimits(20, 8, 10_000_000, 3_000_000, cache_hours=0)
_WORDS = "Strips that the evaluator finds relevant are kept, and number {0} is one of them. " * 3
PAGE = "<title>Strips</title><article><h1>Strips</h1>{}</article>".format(
    "".join(f"<p>{_WORDS.format(number)}</p>" for number in range(8))
)
Ways = dict[str, Callable[[], object]]


class Service(ThreadingHTTPServer):
    """Answers each path after its seconds, and every other path with 404 at once."""

    daemon_threads = True

    def __init__(self, seconds: Mapping[str, float], body: str, content_type: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seconds, self.body, self.content_type = seconds, body.encode(), content_type

    def at(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        seconds = self.server.seconds.get(self.path.partition("?")[0])
        time.sleep(seconds or 0)
        self.send_response(404 if seconds is None else 200)
        self.send_header("Content-Type", self.server.content_type)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None: ...


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
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = prepared(stack, folder, given.documents, given.k)
        print(f"Refinement of {len(asked(bench, 'ambiguous', 0)['internal'])} strips.")
        print(report(in_turns(ways(bench), given.rounds), given.rounds))


def prepared(stack: ExitStack, folder: Path, documents: Path, k: int) -> Bench:
    """Start the services, index the documents, and load what answers questions."""
    paths = {f"/{seconds * 1000:.0f}": seconds for seconds in PAGES}
    sites = [
        stack.enter_context(serving(Service({path: seconds}, PAGE, "text/html"))).at(path)
        for path, seconds in paths.items()
    ]
    one_site = stack.enter_context(serving(Service(paths, PAGE, "text/html")))
    found = {"results": [{"title": "Strips", "url": url} for url in sites]}
    service = Service({"/search": SEARCH}, json.dumps(found), "application/json")
    searcher = SearxngSearcher(stack.enter_context(serving(service)).at(""))
    reader = HttpPageReader(allow_loopback=True, cache=folder / "pages.sqlite")
    encoder = packaged_encoder()
    index = stack.enter_context(DocumentIndex(folder / "index", encoder))
    index_paths([documents], index)
    parts = Parts(
        retriever=IndexRetriever(index),
        evaluator=load_evaluator("default", encoder),
        model=FakeChatModel(replies=["strips, corrective retrieval", "The relevant ones [1]."]),
        searcher=searcher,
        reader=reader,
    )
    return Bench(parts, k, reader, searcher, sites, list(map(one_site.at, paths)))


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    """Run a service in a thread."""
    with service:
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        yield service
        service.shutdown()


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


def in_turns(compared: Ways, rounds: int) -> dict[str, float]:
    """Return the median milliseconds, after a round that warms up and fills the cache."""
    for call in compared.values():
        call()
    taken = [{name: timed(call) for name, call in compared.items()} for _ in range(rounds)]
    return {name: statistics.median(one[name] for one in taken) * 1000 for name in compared}


def report(taken: Mapping[str, float], rounds: int) -> str:
    """Return the table, and what it says about overlap."""
    pages = ", ".join(f"{seconds * 1000:.0f}" for seconds in PAGES)
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
