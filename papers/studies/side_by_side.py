"""CRAG and what tutorials call CRAG, against the same slow services: calls, wall time, tokens.

    python -m crag.papers.studies.side_by_side [--rounds 3] [--concurrent 50] [--k 4 10] [--json]

The chat model takes 300 ms, the search 400 ms, five pages 100 to 900 ms. `binary-llm` asks the
model about one document after the other, searches for any "no", and reads no page; CRAG grades with
the shipped evaluator on this machine's processor, and reads the pages. Both get the same documents,
the first k passages of 100 words of a folder, without the time to retrieve them. What is compared
takes turns after a round to warm up; the table shows medians of one question, and one round of many
at once. No question is asked twice.

"Evaluator of no time" replaces the evaluator by one that only counts words: what is left of CRAG
where the evaluator runs on hardware of its own.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

from langchain_core.documents import Document

from crag.evaluators import load_evaluator
from crag.generation import load_chat_model
from crag.papers.bench.methods import METHODS, Graph
from crag.papers.bench.report import table
from crag.papers.studies.slow_services import EVERY_ONE, MODEL, PAGES, SEARCH, Addresses, services
from crag.parts import Evaluator, Parts
from crag.settings import Settings
from crag.state import strips_of_kind
from crag.testing import FakeEvaluator, FakeRetriever
from crag.web import SearxngSearcher
from crag.web.reader import HttpPageReader

QUESTION = "Which strips of a document does corrective retrieval keep, in case {}?"
WORDS = 100
_CASES = map("".join, product(ascii_lowercase, repeat=4))


class Case(NamedTuple):
    """One way of answering, in one situation."""

    name: str
    method: str
    settings: tuple[tuple[str, str], ...]
    peer: str
    """The case of binary-llm that has the same documents; empty for one of its own."""
    evaluator: str = "default"
    suffix: str = ""
    calls: int = 0
    """Of the chat model beside one for each document."""


SOME, ALL = "binary-llm, one document passes", "binary-llm, all documents pass"
CASES = (
    Case(SOME, "binary_llm", (), "", calls=2),
    Case(ALL, "binary_llm", (), "", suffix=EVERY_ONE, calls=1),
    Case("crag, Correct", "crag", (("only", "correct"),), SOME, calls=1),
    Case("crag, Incorrect", "crag", (("only", "incorrect"),), SOME, calls=2),
    Case("crag, Ambiguous", "crag", (("only", "ambiguous"),), SOME, calls=2),
    Case("crag, Correct, evaluator of no time", "crag", (("only", "correct"),), SOME, "none",
         calls=1),
    Case("crag, Incorrect, evaluator of no time", "crag", (("only", "incorrect"),), SOME, "none",
         calls=2),
)  # fmt: skip


class Measured(NamedTuple):
    """What one case took for one question, or for many at the same time."""

    case: Case
    k: int
    questions: int
    seconds: float
    """Until the last answer; median over rounds."""
    calls: float
    """Of the chat model, for each question."""
    tokens: float
    """In and out, counted as words, for each question."""
    processor: float
    """Seconds of this machine's processor for each question, whatever else it is doing."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrent", type=int, default=50)
    parser.add_argument("--k", type=int, nargs="+", default=[4, 10])
    parser.add_argument("--documents", type=Path, default=Path("docs"))
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every latency")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names hold a text")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with services(given.scale) as addresses:
        documents = passages(given.documents, max(given.k))
        evaluators: dict[str, Evaluator] = {
            "default": load_evaluator(), "none": FakeEvaluator(_by_words),
        }  # fmt: skip
        measured = asyncio.run(all_of(addresses, documents, evaluators, given))
    if given.json:
        print(json.dumps([one._asdict() | {"case": one.case.name} for one in measured]))
    else:
        print(report(measured, given.rounds))


async def all_of(
    addresses: Addresses,
    documents: Sequence[Document],
    evaluators: dict[str, Evaluator],
    given: argparse.Namespace,
) -> list[Measured]:
    """Measure for each number of documents one question, and many at once.

    All of it runs in one event loop, to which the clients' open connections belong.
    """
    measured = []
    cases = [case for case in CASES if any(text in case.name for text in given.only)]
    for k in given.k:
        graphs = {case: compiled(case, addresses, documents[:k], evaluators) for case in cases}
        for questions, rounds in ((1, given.rounds), (given.concurrent, 1)):
            measured += await in_turns(graphs, k, questions, rounds)
    return measured


def compiled(
    case: Case,
    addresses: Addresses,
    documents: Sequence[Document],
    evaluators: dict[str, Evaluator],
) -> Graph:
    """Build the graph of a case."""
    return METHODS[case.method].build(
        Parts(
            retriever=FakeRetriever(documents=list(documents)),
            evaluator=evaluators[case.evaluator],
            model=load_chat_model("m", base_url=addresses.model, retries=0),
            searcher=SearxngSearcher(addresses.search),
            reader=HttpPageReader(allow_loopback=True),
        )
    )


def passages(folder: Path, most: int) -> list[Document]:
    """Cut the texts of a folder into passages of 100 words, and return the first ones."""
    words = [word for path in sorted(folder.rglob("*.md")) for word in path.read_text().split()]
    texts = [" ".join(words[start : start + WORDS]) for start in range(0, len(words), WORDS)]
    if len(texts) < most:
        raise SystemExit(f"{folder} holds {len(texts)} passages, and {most} are needed")
    return [
        Document(f"Passage {number} {text}", metadata={"title": f"Part {number}"})
        for number, text in enumerate(texts[:most], start=1)
    ]


async def in_turns(
    graphs: Mapping[Case, Graph], k: int, questions: int, rounds: int
) -> list[Measured]:
    """Measure every case, in turns, after one question each to warm up."""
    for case, graph in graphs.items():
        await asked(graph, case, k, 1)
    taken: dict[Case, list[Measured]] = {case: [] for case in graphs}
    for _ in range(rounds):
        for case, graph in graphs.items():
            last = await asked(graph, case, k, questions)
            taken[case].append(last)
            told = f"k={k}, {questions} at once, {case.name}: {last.seconds:.2f} s"
            print(f"{told}, CPU {last.processor:.2f} s, {last.tokens:.0f} words", file=sys.stderr)
    return [_median(case, measured) for case, measured in taken.items()]


async def asked(graph: Graph, case: Case, k: int, questions: int) -> Measured:
    """Ask so many questions at the same time; check that the run did what is to be measured."""
    settings = Settings(
        **{**METHODS[case.method].settings, **dict(case.settings)},
        k=k, page_seconds=60, max_web_seconds=300, obey_robots=False,
    )  # fmt: skip
    texts = [f"{QUESTION.format(next(_CASES))} {case.suffix}" for _ in range(questions)]
    start, busy = time.perf_counter(), time.process_time()
    states = await asyncio.gather(
        *(graph.ainvoke({"question": text}, context=settings) for text in texts)
    )
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    needed = case.calls + (k if case.method == "binary_llm" else 0)
    for state in states:
        assert state["usage"]["llm_calls"] == needed, state["events"]
        assert state["answer"].startswith("The relevant ones"), state["events"]
        if case.calls == 2:  # noqa: PLR2004 - rewrite and generate
            assert strips_of_kind(state, "web"), state["events"]
    used = [state["usage"]["input_tokens"] + state["usage"]["output_tokens"] for state in states]
    return Measured(case, k, questions, seconds, needed, statistics.mean(used), busy / questions)


def report(measured: Sequence[Measured], rounds: int) -> str:
    """Return the table, with how many times as long binary-llm takes."""
    pages = ", ".join(f"{1000 * seconds:.0f}" for seconds in PAGES)
    head = (
        f"Model {1000 * MODEL:.0f} ms, search {1000 * SEARCH:.0f} ms, pages {pages} ms; "
        f"one question: median of {rounds} rounds.\n"
    )
    names = ["k", "questions at once", "", "model calls", "tokens (words)", "seconds",
             "CPU seconds each", "binary-llm takes"]  # fmt: skip
    return "\n".join([head, table(names, [list(row) for row in _rows(measured)])])


def _rows(measured: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    seconds = {(one.k, one.questions, one.case.name): one.seconds for one in measured}
    for one in measured:
        peer = seconds.get((one.k, one.questions, one.case.peer))
        ratio = f"{peer / one.seconds:.1f} times as long" if peer else "-"
        yield (
            str(one.k), str(one.questions), one.case.name, f"{one.calls:g}", f"{one.tokens:,.0f}",
            f"{one.seconds:.2f}", f"{one.processor:.2f}", ratio,
        )  # fmt: skip


def _median(case: Case, taken: Sequence[Measured]) -> Measured:
    return taken[0]._replace(
        case=case,
        seconds=statistics.median(one.seconds for one in taken),
        processor=statistics.median(one.processor for one in taken),
    )


def _by_words(question: str, text: str) -> float:
    shared = set(question.lower().split()) & set(text.lower().split())
    return min(1.0, len(shared) / 10)


if __name__ == "__main__":
    main()
