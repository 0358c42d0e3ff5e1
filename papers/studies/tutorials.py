"""CRAG and what tutorials call CRAG, against the same slow services: calls, seconds, tokens.

    python -m crag.papers.studies.tutorials [DOCS]

The chat model takes 300 ms, the search 400 ms, five pages 100 to 900 ms, on loopback in a process
of their own. `binary-llm` asks the model about one document after the other, searches for any "no",
and reads no page; CRAG grades with the shipped evaluator on this machine's processor, and reads the
pages. Both get the same ten documents, the first passages of 100 words of DOCS (docs/), without the
time to retrieve them. The table shows medians of five rounds, of one question and of fifty at once;
tokens are counted as words. No question is asked twice.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

from langchain_core.documents import Document

from crag.evaluators import load_evaluator
from crag.generation import load_chat_model
from crag.papers.bench.methods import METHODS, Graph
from crag.papers.bench.report import table
from crag.papers.settings import PaperSettings
from crag.parts import Parts
from crag.testing import FakeRetriever
from crag.web import SearxngSearcher
from crag.web.reader import HttpPageReader

MODEL, SEARCH, PAGES = 0.3, 0.4, (0.1, 0.3, 0.5, 0.7, 0.9)
"""Seconds."""
QUESTION = "Which strips of a document does corrective retrieval keep, in case {}?"
ALL_PASS = "[all pass]"  # noqa: S105 - no password
"""A question with these words gets a yes for every document, any other one for the first alone."""
WORDS = 100
K, CONCURRENT, ROUNDS = 10, 50, 5
"""Documents of a question, questions at once, and rounds."""
_CASES = map("".join, product(ascii_lowercase, repeat=4))
_PARAGRAPH = (
    "Strips that the evaluator finds relevant are kept, and this is number {0} of them. " * 3
)
_PAGE = "<title>Strips</title><article><h1>Strips</h1>{}</article>".format(
    "".join(f"<p>{_PARAGRAPH.format(number)}</p>" for number in range(8))
)


class Case(NamedTuple):
    """One way of answering, in one situation, and its calls beside one for each document."""

    name: str
    method: str
    settings: dict[str, float]
    suffix: str
    calls: int


CASES = (
    Case("binary-llm, one document passes", "binary_llm", {}, "", 2),
    Case("binary-llm, all documents pass", "binary_llm", {}, ALL_PASS, 1),
    Case("crag, Correct", "crag", {"upper": -100, "lower": -100}, "", 1),
    Case("crag, Incorrect", "crag", {"upper": 100, "lower": 100}, "", 2),
    Case("crag, Ambiguous", "crag", {"upper": 100, "lower": -100}, "", 2),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("docs", type=Path, nargs="?", default=Path("docs"))
    documents = passages(parser.parse_args().docs, K)
    if len(documents) < K:
        parser.error(f"the folder has {len(documents)} passages, and {K} are needed")
    with services(1.0) as (model, search):
        parts = Parts(
            retriever=FakeRetriever(documents=documents),
            evaluator=load_evaluator(),
            model=load_chat_model("m", base_url=model, retries=0),
            searcher=SearxngSearcher(search),
            reader=HttpPageReader(allow_loopback=True),
        )
        rows = asyncio.run(measured(parts, K, CONCURRENT, ROUNDS))
    heads = ("questions at once", "", "model calls", "tokens", "seconds", "CPU seconds each")
    print(table(heads, rows))


async def measured(parts: Parts, k: int, concurrent: int, rounds: int) -> list[list[str]]:
    """Measure one question and many at once, in turns, after one question each to warm up."""
    graphs = {case.name: METHODS[case.method].build(parts) for case in CASES}
    for case in CASES:
        await asked(graphs[case.name], case, k, 1)
    rows = []
    for questions in (1, concurrent):
        taken = [
            [await asked(graphs[case.name], case, k, questions) for case in CASES]
            for _ in range(rounds)
        ]
        for case, found in zip(CASES, zip(*taken, strict=True), strict=True):
            seconds, busy, calls, tokens = (
                statistics.median(part) for part in zip(*found, strict=True)
            )
            figures = [f"{calls:g}", f"{tokens:,.0f}", f"{seconds:.2f}", f"{busy:.2f}"]
            rows.append([str(questions), case.name, *figures])
    return rows


async def asked(graph: Graph, case: Case, k: int, questions: int) -> tuple[float, ...]:
    """Ask so many at the same time; return seconds, and each one's processor, calls and tokens."""
    settings = PaperSettings.model_validate(
        {**METHODS[case.method].settings, **case.settings, "k": k, "obey_robots": False}
    )
    texts = [f"{QUESTION.format(next(_CASES))} {case.suffix}" for _ in range(questions)]
    start, busy = time.perf_counter(), time.process_time()
    states = await asyncio.gather(
        *(graph.ainvoke({"question": text}, context=settings) for text in texts)
    )
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    needed = case.calls + (k if case.method == "binary_llm" else 0)
    for state in states:
        assert state["usage"]["llm_calls"] == needed, state["events"]
    used = [state["usage"]["input_tokens"] + state["usage"]["output_tokens"] for state in states]
    return seconds, busy / questions, needed, statistics.mean(used)


def passages(folder: Path, most: int) -> list[Document]:
    """Cut the texts of a folder into passages of 100 words, and return the first ones."""
    words = [word for path in sorted(folder.rglob("*.md")) for word in path.read_text().split()]
    texts = [" ".join(words[start : start + WORDS]) for start in range(0, len(words), WORDS)]
    return [
        Document(f"Passage {number} {text}", metadata={"title": f"Part {number}"})
        for number, text in enumerate(texts[:most], start=1)
    ]


@contextmanager
def services(scale: float) -> Iterator[tuple[str, str]]:
    """Run a chat model, a search and five sites; `scale` multiplies every latency."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, scale), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, handler: type[BaseHTTPRequestHandler], seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.seconds = seconds
        self.hits: list[dict[str, str]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Service(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send hits, a page, or nothing for robots.txt."""
        if self.server.hits:
            self._send(json.dumps({"results": self.server.hits}))
        elif self.path == "/page":
            self._send(_PAGE, "text/html")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        """Reply as a chat model does."""
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [message["content"] for message in sent["messages"]]
        reply = _reply(" ".join(texts), texts[-1])
        used = sum(len(text.split()) for text in texts), len(reply.split())
        usage = {"prompt_tokens": used[0], "completion_tokens": used[1], "total_tokens": sum(used)}
        message = {"role": "assistant", "content": reply}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        self._send(json.dumps(head | {"choices": [choice], "usage": usage}))

    def _send(self, body: str, content_type: str = "application/json") -> None:
        time.sleep(self.server.seconds)
        content = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its names
        """Stay silent."""


def _serve(pipe: Connection, scale: float) -> None:
    sites = [_Server(_Service, scale * seconds) for seconds in PAGES]
    search, model = _Server(_Service, scale * SEARCH), _Server(_Service, scale * MODEL)
    search.hits = [
        {"title": "Strips", "url": f"{site.address}/page", "content": _PARAGRAPH.format(place)}
        for place, site in enumerate(sites)
    ]
    pipe.send((f"{model.address}/v1", search.address))
    threading.Event().wait()


def _reply(whole: str, prompt: str) -> str:
    if "yes or no" in whole:
        return "yes" if ALL_PASS in prompt or "Passage 1 " in prompt else "no"
    return "strips, kept" if prompt.rstrip().endswith("query:") else "The relevant ones [1]."


if __name__ == "__main__":
    main()
