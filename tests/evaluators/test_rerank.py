"""The rerank API, as services of four makers speak it."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import EvaluatorError
from crag.evaluators import RerankEvaluator, load_evaluator
from crag.parts import Evaluator
from tests.loopback import Loopback, serving

SCORES = {"far": 0.1, "near": 0.75, "right": 1.0}


def cohere(sent: dict[str, Any]) -> dict[str, Any]:
    """Reply as Cohere, Jina, vLLM and Infinity do: best first, with more than is read."""
    scored = [
        {"index": place, "relevance_score": SCORES[text], "document": {"text": text}}
        for place, text in enumerate(sent["documents"])
    ]
    return {"id": "1", "results": sorted(scored, key=lambda one: -one["relevance_score"])}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(cohere) as running:
        yield running


def test_scores_come_back_in_the_order_of_the_texts(server: Loopback) -> None:
    url = f"{server.url}/v1/rerank?model=acme/reranker&version=2"
    evaluator = load_evaluator(url, token="a-token")  # noqa: S106 - a made-up one
    assert isinstance(evaluator, RerankEvaluator)
    assert isinstance(evaluator, Evaluator)
    assert evaluator.thresholds == {"upper": 0.5, "lower": -0.5}
    assert evaluator.score("Where?", ["near", " ", "right", "far"]) == [0.5, -1.0, 1.0, -0.8]
    (sent,) = server.requests
    assert (sent["path"], sent["authorization"]) == ("/v1/rerank", "Bearer a-token")
    assert (sent["query"], sent["model"], sent["top_n"]) == ("Where?", "acme/reranker", 3)
    assert sent["documents"] == ["near", "right", "far"]
    assert evaluator.score("Where?", ["", "\n"]) == [-1.0, -1.0]
    assert len(server.requests) == 1


def test_logits_are_read_only_where_the_address_says_so(server: Loopback) -> None:
    server.body = {"results": [{"index": 0, "relevance_score": -3.2}]}
    with pytest.raises(EvaluatorError, match="no probabilities: add scores=logits"):
        RerankEvaluator(f"{server.url}/rerank").score("?", ["far"])
    evaluator = RerankEvaluator(f"{server.url}/rerank?scores=logits")
    assert evaluator.score("?", ["far"]) == [pytest.approx(-0.9217, abs=1e-4)]


@pytest.mark.parametrize("status", [401, 302, 503])
def test_a_service_that_refuses_says_why(server: Loopback, status: int) -> None:
    server.statuses = [status]
    with pytest.raises(EvaluatorError, match=rf"rerank: status {status}: .*the server's words"):
        RerankEvaluator(f"{server.url}/rerank?model=x").score("?", ["near"])


@pytest.mark.parametrize(
    "body",
    [
        b"not JSON",
        {"results": None},
        {"results": [{"index": 1, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": None}]},
        {"results": [{"index": 0, "relevance_score": float("nan")}]},
    ],
)
def test_a_reply_that_does_not_score_every_text_is_refused(server: Loopback, body: Any) -> None:
    server.body = body
    with pytest.raises(EvaluatorError, match=r"does not score each of 1 texts|no probabilities"):
        RerankEvaluator(f"{server.url}/rerank").score("?", ["near"])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h:8000", "write its address as"),
        ("http://user:secret@h/rerank", "http://h/rerank: write its address as"),
        ("http:///rerank", "write its address as"),
        ("http://h:port/rerank", "Invalid port"),
    ],
)
def test_what_is_no_address_is_refused(url: str, said: str) -> None:
    with pytest.raises(EvaluatorError, match=said) as caught:
        load_evaluator(url)
    assert "secret" not in str(caught.value)
