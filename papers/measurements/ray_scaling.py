r"""Measure indexing and batch answering on Ray: 1, 2 and 4 simulated nodes of one core each.

0 nodes stand for one process without Ray.

    python papers/measurements/ray_scaling.py [--nodes 0 1 2 4] [--records 4096] \
        [--questions 120] [--real]

The nodes share this machine. Compute is therefore simulated by default: services on loopback take
10 ms to embed a text, 50 ms to judge the documents of a question and 300 ms to answer it, without
computing. What is then measured is what Ray and the one process that writes add. With `--real` the
embedded models compute, and more nodes than cores cannot be faster. A rate is that after the first
block or answer, as a cluster takes seconds to start its workers. Index and answers of each number
of nodes are compared with those of one process; not the citations, as hundreds of these facts are
equally near to a question, and which of them come first depends on the order of writing.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.asking.batch import AnswerFile, Asking, answer_all
from crag.asking.budget import Budget
from crag.asking.evaluation import Question
from crag.cli.index_workers import ray_reader
from crag.factory.indexing import choose_encoder
from crag.index import DocumentIndex, index_paths
from crag.index.backends import open_backend
from crag.index.update import reader_within
from crag.runtime.environment import Environment
from crag.runtime.ray_cluster import load_ray

EMBEDDING, EVALUATOR, MODEL = 0.01, 0.05, 0.3
"""Seconds for a text, for the documents of a question, for an answer."""
DIMENSION = 384
ABOUT = {"name": "simulated", "thresholds": {"upper": 0.5, "lower": -0.5}}


Results = tuple[dict[str, dict[str, Any]], dict[str, list[Any]]]
"""What is stored of each chunk, and what was answered to each question."""


class Rate(NamedTuple):
    """One run."""

    seconds: float
    """Of the whole."""
    rate: float
    """Documents or questions a second, after the first ones."""


class Stopwatch:
    """Takes the time of the first and of the last progress."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first: tuple[float, int] | None = None
        self._last = (self._start, 0)

    def __call__(self, done: int, *_: object) -> None:
        """Note that so many are done."""
        self._last = (time.perf_counter(), done)
        if self._first is None and done:
            self._first = self._last

    @property
    def rate(self) -> Rate:
        """What was measured."""
        begun, done = self._first or (self._start, 0)
        ended, all_of_them = self._last
        return Rate(ended - self._start, (all_of_them - done) / max(ended - begun, 1e-9))


async def _embed(request: Request) -> Response:
    texts = (await request.json())["input"]
    await asyncio.sleep(EMBEDDING * len(texts))
    # Vectors that differ, so that no index treats them as one.
    data = [
        {"object": "embedding", "index": place, "embedding": _vector(str(text))}
        for place, text in enumerate(texts)
    ]
    return JSONResponse({"object": "list", "data": data, "model": "simulated", "usage": _USED})


def _vector(text: str) -> list[float]:
    number = sum(text.encode()) + len(text)
    return [((number * (place + 1)) % 97) / 97 + 0.01 for place in range(DIMENSION)]


_USED = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}


async def _complete(_: Request) -> Response:
    await asyncio.sleep(MODEL)
    choice = {
        "index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "It is so [1]."},
    }  # fmt: skip
    told = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return JSONResponse(told | {"choices": [choice], "usage": _USED})


async def _score(request: Request) -> Response:
    await asyncio.sleep(EVALUATOR)
    passages = (await request.json())["passages"]
    return JSONResponse({"about": ABOUT, "scores": [0.9] * len(passages)})


async def _about(_: Request) -> Response:
    return JSONResponse(ABOUT)


def _serve(port: int) -> None:
    routes = [
        Route("/v1/embeddings", _embed, methods=["POST"]),
        Route("/v1/chat/completions", _complete, methods=["POST"]),
        Route("/about", _about),
        Route("/score", _score, methods=["POST"]),
    ]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="error")


@contextmanager
def services() -> Iterator[str]:
    """Run the services in a process of their own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(port,), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                httpx.get(f"{url}/about", trust_env=False)
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.join()


@contextmanager
def nodes(number: int) -> Iterator[str]:
    """Start a cluster of so many nodes of one core on this machine, and yield its address."""
    load_ray()
    from ray.cluster_utils import Cluster

    started: Any = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        for _ in range(number - 1):
            started.add_node(num_cpus=1)
        yield started.address
    finally:
        started.shutdown()


def indexed(data: Path, place: Path, address: str | None) -> Rate:
    """Index a file, in this process or on a cluster."""
    environment = Environment().model_copy(update={"index": str(place)})
    watch = Stopwatch()
    with DocumentIndex(place, choose_encoder(environment)) as index:
        reader = ray_reader(environment, address) if address else reader_within()
        index_paths([data], index, progress=watch, reader=reader)
    return watch.rate


def answered(questions: int, place: Path, output: Path, address: str | None) -> Rate:
    """Answer questions, one at a time in this process, or one a core of a cluster."""
    environment = Environment().model_copy(update={"index": str(place)})
    asking = Asking(environment.shared(), "crag", ())
    asked = [Question(str(n), f"How long is river {n}?") for n in range(questions)]
    watch = Stopwatch()
    with AnswerFile(output, asking.run) as answers:
        ended = answer_all(
            asked, asking, answers, budget=Budget(), concurrency=1, ray=address, progress=watch
        )
    assert ended.statuses == {"answered": questions}, ended
    return watch.rate


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--records", type=int, default=4096)
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--real", action="store_true", help="let the embedded models compute")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, services() as url:
        data = Path(name, "facts.jsonl")
        facts = (
            json.dumps({"id": str(n), "text": f"River {n} is {n} km long, and no river is longer."})
            for n in range(given.records)
        )
        data.write_text("\n".join(facts))
        if not given.real:
            os.environ |= {
                "CRAG_EMBEDDING_MODEL": "openai:simulated", "CRAG_EVALUATOR": url,
                "CRAG_MODEL": "m", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none",
            }  # fmt: skip
        print("| nodes | index: s | documents/s | batch: s | questions/s | same results |")
        print("|---|---|---|---|---|---|")
        first: Results | None = None
        for number in given.nodes:
            folder = Path(name, str(number))
            folder.mkdir()
            with nodes(number) if number else nullcontext() as address:
                index = indexed(data, folder / "index", address)
                answers = folder / "answers.jsonl"
                batch = answered(given.questions, folder / "index", answers, address)
            found = results(folder)
            first = first or found
            cells = [str(number), f"{index.seconds:.1f}", f"{index.rate:.0f}"]
            cells += [
                f"{batch.seconds:.1f}",
                f"{batch.rate:.2f}",
                "yes" if found == first else "NO",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


def results(folder: Path) -> Results:
    """Return every chunk that is stored with its metadata, and what every question came to."""
    with closing(open_backend(str(folder / "index"))) as index:
        chunks = {identifier: dict(known) for identifier, known in index.stored()}
    rows = map(json.loads, (folder / "answers.jsonl").read_text().splitlines())
    return chunks, {row["id"]: [row["answer"], row["action"], row["status"]] for row in rows}


if __name__ == "__main__":
    main()
