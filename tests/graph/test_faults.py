"""Questions with faults everywhere: none raises, none is lost, all are on record."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from crag.answering.outcome import NOT_FOUND
from crag.graph import build_crag
from crag.parts import Hit, Parts, WebSearcher
from crag.state import InputState, State
from crag.testing import FakeQuoter, FakeRetriever, FakeSearcher
from crag.web.reader import HttpPageReader
from tests.graph.faults import (
    EVALUATOR,
    GENERATOR,
    HEALTHY,
    NOBODY,
    PAGES,
    READER,
    RETRIEVER,
    REWRITER,
    SEARCH,
    Case,
    alone,
    together,
)
from tests.graph.faulty import (
    BrokenReader,
    BrokenSearcher,
    Judge,
    Writer,
    as_found,
    prepared,
    question,
    settings,
    spoil,
)
from tests.loopback import Loopback
from tests.repeating import times
from tests.web.engines import ENGINES, searching
from tests.web.site import Website, website

SEEDS = (17, 18, 19, 20)
EACH = times(25, 50)
AT_ONCE = 12
OUTCOMES = ("abstained", "uncited_answer")
MARK = re.compile(r"\[(\d+)\]")


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        yield prepared(running)


@pytest.fixture
def bench(make_parts: Any, site: Website, tmp_path: Path) -> "Bench":
    reader = HttpPageReader(allow_loopback=True, cache=tmp_path / "pages.sqlite", longest_wait=0.01)
    return Bench(make_parts, site, reader)


@dataclass
class Bench:
    """What the questions share, as the users of one process do: a site, and a reader with cache."""

    make_parts: Any
    site: Website
    reader: HttpPageReader

    def hits(self, case: Case) -> list[Hit]:
        found: list[Hit] = []
        for rank, fault in enumerate(case.pages):
            place = PAGES[fault][0] if fault else HEALTHY[(case.number + rank) % len(HEALTHY)]
            url = place if "://" in place else self.site.at(place)
            mark = f"?case={case.number}&hit={rank}"
            found.append(Hit(f"Hit {rank}", url + mark, f"Snippet {rank} about a lighthouse."))
        return found

    @contextmanager
    def searcher(self, case: Case) -> Iterator[tuple[Loopback | None, WebSearcher | None]]:
        """Start the search service of one question, with its fault."""
        hits = self.hits(case)
        match case.search:
            case "not_configured":
                yield None, None
            case "raises":
                yield None, FakeSearcher(error=RuntimeError("a fault of the searcher's own"))
            case "no_hits_at_all":
                yield None, BrokenSearcher(hits)
            case "no_such_host" | "not_listening" as fault:
                url = NOBODY if fault == "not_listening" else "http://nowhere.invalid"
                made = ENGINES[case.engine].searcher(url, timeout=10, longest_wait=0.01)
                yield None, made
            case fault:
                quick = {"timeout": 0.2} if fault == "timeout" else {}
                with searching(case.engine, as_found(hits, fault), **quick) as (server, made):
                    spoil(server, fault)
                    yield server, made

    def parts(self, case: Case, searcher: WebSearcher | None) -> Parts:
        changed: dict[str, Any] = {
            "evaluator": Judge(case),
            "searcher": searcher,
            "reader": BrokenReader(case.reader) if case.reader else self.reader,
            "quoter": FakeQuoter() if case.quoter or case.rewriter == "no_model" else None,
            "model": Writer(rewriter=case.rewriter, generator=case.generator),
        }
        if case.rewriter == "no_model":
            changed["model"] = None
        if case.retriever:
            error = OSError("the index is gone") if case.retriever == "raises" else None
            changed["retriever"] = FakeRetriever(error=error)
        return cast("Parts", self.make_parts(**changed))

    async def ask(self, case: Case) -> "Run":
        """Ask one question in its own way."""
        with self.searcher(case) as (server, searcher):
            parts = self.parts(case, searcher)
            asked = InputState(question=question(case))
            graph: Any = build_crag(parts)
            if case.way == "invoke":
                state = await asyncio.to_thread(graph.invoke, asked, context=settings(case))
            else:
                state = await graph.ainvoke(asked, context=settings(case))
            requests = len(server.requests) if server else 0
        fetched = {self.site.at(path) for path in self.site.paths()}
        return Run(case, parts, cast("State", state), self.hits(case), requests, fetched)


@dataclass
class Run:
    """What became of one question, to be held against what was done to it."""

    case: Case
    parts: Parts
    state: State
    hits: list[Hit]
    requests: int
    fetched: set[str]
    """All that the site was asked for, by any question."""
    late: set[str] = field(default_factory=set)

    def check(self) -> None:
        """Hold answer, pages and events against the faults that were delivered."""
        assert self.state["question"] == question(self.case)
        self._check_answer()
        searched = self.state["action"] != "correct"
        if searched:
            self._check_search()
        self._check_pages()
        kinds = [entry["kind"] for entry in self.state["events"]]
        recorded = Counter[str](kind for kind in kinds if kind not in OUTCOMES)
        assert recorded == self._ledger(searched=searched), self.state["events"]
        assert "tvly-secret" not in str(self.state)

    def _check_answer(self) -> None:
        """It cites strips of the state, or it abstains."""
        state = self.state
        kept = [s for s in (*state["internal"], *state["external"]) if s["kept"]]
        if state["abstained"]:
            assert (state["answer"], state["citations"]) == (NOT_FOUND, [])
            assert state["events"][-1]["kind"] == "abstained"
            return
        assert state["citations"]
        for citation in state["citations"]:
            strip = kept[citation["number"] - 1]
            assert (citation["text"], citation["source"]) == (strip["text"], strip["source"])
        marks = {int(number) for number in MARK.findall(state["answer"])}
        assert marks == {citation["number"] for citation in state["citations"]}

    def _check_search(self) -> None:
        assert self.state["query"]
        kind, requests = SEARCH.get(self.case.search, (None, 1))
        if self.case.search in {"timeout", "hangs"}:  # On a busy machine fewer get through in time.
            assert self.requests <= requests
        else:
            assert self.requests == requests
        found = [hit["url"] for hit in self.state["hits"]]
        expected = [hit.url for hit in self.hits] if kind in {None, "hits_dropped"} else []
        assert found == expected

    def _check_pages(self) -> None:
        """Each page that was found is on record; each failed one has its event and its snippet."""
        pages = self.state["pages"]
        assert [page["url"] for page in pages] == [hit["url"] for hit in self.state["hits"]]
        events = [e["detail"] for e in self.state["events"] if e["kind"] == "page_failed"]
        for page, fault, hit in zip(pages, self.case.pages, self.hits, strict=False):
            told = [detail for detail in events if detail.startswith(f"{hit.url}: ")]
            if self.case.slow and "in time" in page["detail"]:
                self.late.add(hit.url)  # As it may where `page_seconds` is short.
            if fault or self.case.reader or hit.url in self.late:
                assert page["status"] == "failed", (fault, page)
                assert len(told) == 1
                assert self.case.reader or hit.url in self.late or PAGES[fault][1] in told[0], told
                assert hit.snippet in [s["text"] for s in self.state["external"]]
                assert hit.url in self.fetched or not self._reaches_the_site(hit.url)
            else:
                assert page["status"] == "read", page
                assert page["paragraphs"] > 0
                assert told == []

    def _reaches_the_site(self, url: str) -> bool:
        """Say whether the fault can only have been met by asking the site."""
        elsewhere = url.startswith((NOBODY, "http://nowhere.invalid", "http://169.254."))
        return not (elsewhere or self.case.reader or url in self.late)

    def _ledger(self, *, searched: bool) -> Counter[str]:
        """Count the events that the delivered faults call for."""
        case, due = self.case, Counter[str]()
        if case.retriever:
            due[RETRIEVER[case.retriever]] += 1
        if isinstance(self.parts.evaluator, Judge):
            due["evaluator_failed"] += self.parts.evaluator.failures
        if isinstance(self.parts.model, Writer):
            due.update(self.parts.model.failures)
        if searched:
            due[SEARCH.get(case.search, (None, 0))[0] or ""] += 1
            skipped = case.rewriter == "no_model" and case.search != "not_configured"
            due["rewrite_skipped"] += skipped
        for index, _ in enumerate(self.state["hits"]):
            failed = case.pages[index] or case.reader or self.hits[index].url in self.late
            due["page_failed"] += bool(failed)
        due.pop("", None)
        return +due


@pytest.mark.parametrize("case", alone().values(), ids=alone().keys())
async def test_one_fault_alone(bench: Bench, case: Case) -> None:
    run = await bench.ask(case)
    run.check()
    if case.search or case.reader or any(case.pages) or case.evaluator or case.retriever:
        assert run.state["action"] in {"incorrect", "ambiguous"}
    assert run.requests or case.search == "hangs" or SEARCH[case.search][1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_questions_with_faults_at_random(bench: Bench, seed: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(case: Case) -> Run:
        async with gate:
            return await bench.ask(case)

    cases = together(seed, EACH)
    runs = await asyncio.gather(*(ask(case) for case in cases))
    assert [run.case.number for run in runs] == list(range(EACH))
    for run in runs:
        run.check()


def test_the_random_cases_hold_every_fault_and_many_at_once() -> None:
    cases = [case for seed in SEEDS for case in together(seed, EACH)]
    assert len(cases) == 4 * EACH
    assert {case.search for case in cases} == {"", *SEARCH}
    assert {fault for case in cases for fault in case.pages} == {"", *PAGES}
    assert {case.reader for case in cases} == {"", *READER}
    assert {case.rewriter for case in cases} == {"", *REWRITER}
    assert {case.generator for case in cases} == {"", *GENERATOR}
    assert {case.evaluator for case in cases} == {"", *EVALUATOR}
    assert {case.retriever for case in cases} == {"", *RETRIEVER}
    assert sum(bool(c.search) + any(c.pages) + bool(c.rewriter) > 1 for c in cases) > EACH
