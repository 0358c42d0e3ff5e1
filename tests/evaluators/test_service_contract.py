"""One contract for every evaluator service: `crag serve-evaluator`, and replicas on Ray Serve."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette

from crag.errors import EvaluatorError, MissingPackageError
from crag.evaluator_service.app import evaluator_app, served
from crag.evaluator_service.replicas import Replicas, application
from crag.evaluators import ReaderEvaluator, RemoteReader, load_evaluator
from crag.evaluators.contract import MOST_BYTES, MOST_PASSAGES, About, Readings, Scores
from crag.parts import Evaluator, Passage, is_reading
from crag.runtime.environment import Environment
from crag.testing import FakeEvaluator

TOKEN = "a-token-of-the-service"  # noqa: S105 - of a test
QUESTION = "Who wrote the first published program?"
TEXT = "Ada Lovelace wrote the first published program. It was for the Analytical Engine."
PASSAGES = [Passage("Ada Lovelace", TEXT, "Work"), Passage("", "Rain fell."), Passage("Empty", " ")]
ASKED = {"question": QUESTION, "passages": [{"text": TEXT}]}


@contextmanager
def running(app: Starlette) -> Iterator[str]:
    """Run an application on a free port of loopback."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def on_ray() -> Iterator[str]:
    """Run two replicas on Ray Serve."""
    from ray import serve

    from crag.runtime.ray_cluster import cluster, load_ray

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with cluster(load_ray(), 3):
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(application(Replicas(replicas=2, cpus=0.5)), route_prefix="/")
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            serve.shutdown()


ON_RAY = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Ray Serve and pydantic disagree.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves sockets to the collector.
]


@pytest.fixture(scope="module", params=["process", pytest.param("ray", marks=ON_RAY)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CRAG_EVALUATOR_TOKEN", TOKEN)
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        at = on_ray() if request.param == "ray" else running(served(Environment()))
        with at as found:
            yield found


@pytest.fixture(scope="module")
def client(url: str) -> RemoteReader:
    evaluator = load_evaluator(url, token=TOKEN, seconds=60)
    assert isinstance(evaluator, RemoteReader)
    return evaluator


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=url, trust_env=False, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
    ) as client:
        yield client


@pytest.fixture(scope="module")
def local() -> ReaderEvaluator:
    return ReaderEvaluator.packaged()


def test_it_says_what_it_serves(client: RemoteReader, local: ReaderEvaluator) -> None:
    assert client.about.name == "default"
    assert client.thresholds == local.thresholds
    assert client.quote_threshold == local.quote_threshold
    assert client.languages == local.languages
    assert is_reading(client)


def test_it_judges_as_the_evaluator_here(client: RemoteReader, local: ReaderEvaluator) -> None:
    assert client.read(QUESTION, PASSAGES) == local.read(QUESTION, PASSAGES)
    assert client.score_passages(QUESTION, PASSAGES) == local.score_passages(QUESTION, PASSAGES)
    texts = [f"Ada // {TEXT}", "Rain fell."]
    assert client.score(QUESTION, texts) == local.score(QUESTION, texts)
    assert client.read(QUESTION, []) == []


def test_passages_beyond_one_request_keep_their_order(client: RemoteReader) -> None:
    scores = client.score(QUESTION, [*["Rain."] * MOST_PASSAGES, TEXT])
    assert scores[:-1] == pytest.approx([scores[0]] * MOST_PASSAGES, abs=1e-5)
    assert scores[-1] > scores[0]


def test_many_ask_at_once(client: RemoteReader, local: ReaderEvaluator) -> None:
    questions = [f"{QUESTION} {number}" for number in range(12)]
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda one: client.score_passages(one, PASSAGES), questions))
    for question, scores in zip(questions, found, strict=True):
        assert scores == pytest.approx(local.score_passages(question, PASSAGES), abs=1e-4)


def test_replies_are_those_of_the_contract(http: httpx.Client) -> None:
    assert http.get("/ok").json() == {"ok": True}
    about = About.model_validate(http.get("/about").json())
    scores = Scores.model_validate(http.post("/score", json=ASKED).json())
    readings = Readings.model_validate(http.post("/read", json=ASKED).json())
    assert scores.about == readings.about == about
    assert scores.scores == [readings.readings[0]["score"]]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "question"),
        ({"question": "?", "passages": [{"title": "T"}]}, "passages.0.text"),
        ({"question": "?", "passages": [{"text": "t"}] * (MOST_PASSAGES + 1)}, "passages"),
        ([], "an object"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(
    http: httpx.Client, body: object, named: str
) -> None:
    response = http.post("/score", json=body)
    assert response.status_code == 422
    assert named in response.json()["detail"]


def test_who_may_not_ask_is_refused(http: httpx.Client, url: str) -> None:
    assert http.post("/score", content=b"{}").status_code == 415
    assert http.post("/score", json=ASKED, headers={"Origin": url}).status_code == 403
    for token in ("", "Bearer wrong", f"Basic {TOKEN}"):
        response = http.post("/score", json=ASKED, headers={"Authorization": token})
        assert response.status_code == 401
    assert http.get("/nothing").status_code == 404


def test_without_reading_there_is_no_address_for_it() -> None:
    with running(evaluator_app(FakeEvaluator(0.25, upper=0.75, lower=0.125), "fake")) as url:
        evaluator: Evaluator = load_evaluator(url)
        assert not is_reading(evaluator)
        assert evaluator.score("?", ["a", "b"]) == [0.25, 0.25]
        assert evaluator.thresholds == {"upper": 0.75, "lower": 0.125}
        assert httpx.post(f"{url}/read", json=ASKED, trust_env=False).status_code == 404


def test_a_score_that_is_none_stays_none() -> None:
    with running(evaluator_app(FakeEvaluator(float("nan")), "fake")) as url:
        (score,) = load_evaluator(url).score("?", ["a"])
        assert score != score  # noqa: PLR0124 - NaN


def test_a_crowd_is_refused_and_told_when_to_come_back() -> None:
    go_on = threading.Event()
    evaluator = FakeEvaluator(lambda *_: float(go_on.wait(30)))
    with (
        running(evaluator_app(evaluator, "fake", most_waiting=1)) as url,
        ThreadPoolExecutor(1) as threads,
        httpx.Client(base_url=url, trust_env=False, timeout=30) as client,
    ):
        first = threads.submit(client.post, "/score", json=ASKED)
        while not evaluator.calls:
            time.sleep(0.005)
        second = client.post("/score", json=ASKED)
        go_on.set()
        assert (second.status_code, second.headers["retry-after"]) == (503, "1")
        assert first.result().json()["scores"] == [1.0]


def test_a_failing_evaluator_is_an_answer_with_its_reason() -> None:
    with running(evaluator_app(FakeEvaluator(error=OSError("no weights")), "fake")) as url:
        response = httpx.post(f"{url}/score", json=ASKED, trust_env=False)
    assert response.status_code == 500
    assert "no weights" in response.json()["detail"]


@pytest.mark.parametrize(
    ("client", "status"),
    [("127.0.0.1", 200), ("::1", 200), ("10.0.0.1", 403), ("2001:db8::1", 403), ("a-name", 403)],
)
async def test_without_a_token_only_this_machine_is_answered(client: str, status: int) -> None:
    app = httpx.ASGITransport(evaluator_app(FakeEvaluator(0.25), "fake"), client=(client, 1))
    async with httpx.AsyncClient(transport=app, base_url="http://127.0.0.1") as asking:
        reply = await asking.post("/score", json=ASKED)
        assert reply.status_code == status
        if status == 403:
            said = "without a token this service answers its own machine only"
            assert reply.json()["detail"] == said
        else:
            large = await asking.post(
                "/score",
                content=bytes(MOST_BYTES + 1),
                headers={"Content-Type": "application/json"},
            )
            assert (large.status_code, large.json()["detail"]) == (
                413, "a body may have 33,554,432 bytes: send less",
            )  # fmt: skip


def test_a_service_serves_no_other_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_EVALUATOR", "http://127.0.0.1:8765")
    with pytest.raises(EvaluatorError, match=r"names another service, http://127\.0\.0\.1"):
        served(Environment())


def test_ray_serve_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingPackageError, match=r"'\.\[ray-serve\]'"):
        application(Replicas(replicas=2))
    with pytest.raises(ValidationError, match="replicas"):
        Replicas(replicas=0)
