"""The comparison with what tutorials do, on small numbers: it counts calls as CRAG promises."""

import asyncio

import pytest

from crag.generation import load_chat_model
from crag.papers.studies.tutorials import CASES, measured, services
from crag.parts import Parts
from crag.testing import FakeEvaluator, FakeRetriever
from crag.web import SearxngSearcher
from crag.web.reader import HttpPageReader
from tests.conftest import DOCUMENTS


@pytest.mark.slow
def test_calls_are_1_2_2_against_one_for_each_document() -> None:
    with services(0.02) as (model, search):
        parts = Parts(
            retriever=FakeRetriever(documents=list(DOCUMENTS)),
            evaluator=FakeEvaluator(0.9),
            model=load_chat_model("m", base_url=model, retries=0),
            searcher=SearxngSearcher(search),
            reader=HttpPageReader(allow_loopback=True),
        )
        rows = asyncio.run(measured(parts, [2], 2, 1))
    calls = [(row[1], row[2], row[3]) for row in rows]
    expected = [4, 3, 1, 2, 2]  # No passage of these has a number, so that none passes the grader.
    assert calls[:5] == [("1", c.name, str(n)) for c, n in zip(CASES, expected, strict=True)]
    assert [number for *_, number in calls[5:]] == list(map(str, expected))
