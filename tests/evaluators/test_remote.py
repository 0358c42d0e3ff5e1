"""A service that fails, lies or is not there: retries, a circuit, another evaluator, and events."""

import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from crag.cli.doctor import examine
from crag.errors import EvaluatorError
from crag.evaluators import (
    RemoteEvaluator,
    RemoteReader,
    load_evaluator,
    with_fallback,
)
from crag.evaluators.circuit import Circuit
from crag.events import Event, noting
from crag.factory.parts import choose_evaluator
from crag.graph import build_crag
from crag.parts import Passage, is_reading
from crag.runtime.environment import Environment
from crag.testing import FakeEvaluator, FakeReadingEvaluator
from tests.loopback import Loopback, serving

ABOUT = {"name": "served", "thresholds": {"upper": 0.75, "lower": 0.25}, "languages": ["en"]}
READS = ABOUT | {"reads": True, "quote_threshold": 0.5}
READING = {"score": 0.9, "starts": [0], "evidence": [95], "span": None}
NOWHERE = "http://127.0.0.1:9"  # The port of `discard`, which nobody has.


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving({"about": ABOUT, "scores": [0.5]}) as running:
        yield running


def reply(*scores: Any) -> dict[str, Any]:
    return {"about": ABOUT, "scores": list(scores)}


def kinds(events: list[Event]) -> list[str]:
    return [one["kind"] for one in events]


def test_the_thresholds_are_those_of_the_last_judgement(server: Loopback) -> None:
    evaluator = RemoteEvaluator(server.url)
    assert evaluator.score("?", ["text"]) == [0.5]
    assert evaluator.thresholds == {"upper": 0.75, "lower": 0.25}
    other = ABOUT | {"thresholds": {"upper": 0.5, "lower": 0}}
    server.body = {"about": other, "scores": [0.6]}
    evaluator.score("?", ["text"])
    assert evaluator.thresholds == {"upper": 0.5, "lower": 0}
    assert len(server.requests) == 2


def test_the_token_is_sent(server: Loopback) -> None:
    RemoteEvaluator(server.url, token="a-token").score("?", ["text"])  # noqa: S106 - of a test
    assert server.requests[0]["authorization"] == "Bearer a-token"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_that_passes_is_asked_again_and_noted(server: Loopback, status: int) -> None:
    server.statuses = [status, status]
    with noting("grade") as events:
        assert RemoteEvaluator(server.url).score("?", ["text"]) == [0.5]
    assert len(server.requests) == 3
    assert kinds(events) == ["evaluator_retried"]
    assert str(status) in events[0]["detail"]


def test_the_wait_that_a_service_asks_for_is_kept_or_too_long(server: Loopback) -> None:
    server.headers = {503: {"Retry-After": "0"}, 429: {"Retry-After": "60"}}
    server.statuses = [503]
    evaluator = RemoteEvaluator(server.url)
    assert evaluator.score("?", ["text"]) == [0.5]
    server.statuses = [429]
    with pytest.raises(EvaluatorError, match="status 429"):
        evaluator.score("?", ["text"])
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "told"),
    [(401, "CRAG_EVALUATOR_TOKEN"), (404, "status 404"), (302, "not followed"), (413, "413")],
)
def test_what_does_not_pass_is_not_asked_again(server: Loopback, status: int, told: str) -> None:
    server.statuses = [status]
    server.headers = {302: {"Location": f"{server.url}/other"}}
    with pytest.raises(EvaluatorError, match=told):
        RemoteEvaluator(server.url).score("?", ["text"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"no JSON",
        b'{"about": {"name": "x", "thresholds": {"upper": 1, "lower": 0}}, "scores": [NaN]}',
        reply(),
        reply(0.5, 0.5),
        reply("high"),
        {"scores": [0.5]},
        {"about": ABOUT | {"thresholds": {"upper": 0, "lower": 1}}, "scores": [0.5]},
        b" " * 2**21,
    ],
)
def test_a_wrong_reply_is_a_failure(server: Loopback, body: Any) -> None:
    server.body = body
    with pytest.raises(EvaluatorError, match=r"reply|replied"):
        RemoteEvaluator(server.url).score("?", ["text"])
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "change",
    [{"score": 7}, {"starts": [1]}, {"evidence": [200]}, {"starts": [0, 99], "evidence": [1, 2]},
     {"span": {"start": 3, "end": 99, "score": 0.5}}, {"evidence": []}],
)  # fmt: skip
def test_a_wrong_reading_is_a_failure(server: Loopback, change: dict[str, Any]) -> None:
    server.body = {"about": READS, "readings": [READING | change]}
    with pytest.raises(EvaluatorError, match="reading"):
        RemoteReader(server.url).read("?", [Passage("", "text")])


def test_a_slow_service_is_not_waited_for(server: Loopback) -> None:
    server.seconds = 30
    with pytest.raises(EvaluatorError, match=r"within 0\.05 s"):
        RemoteEvaluator(server.url, seconds=0.05).score("?", ["text"])


def test_the_circuit_opens_and_one_call_tries_again(server: Loopback) -> None:
    now = [0.0]
    circuit = Circuit(failures=3, seconds=30, clock=lambda: now[0])
    evaluator = RemoteEvaluator(server.url, circuit=circuit)
    server.statuses = [503] * 3
    with noting("grade") as events, pytest.raises(EvaluatorError, match="status 503"):
        evaluator.score("?", ["text"])
    assert kinds(events) == ["circuit_opened"]
    assert events[0]["fallback"] == "not asked for 30 s"
    with pytest.raises(EvaluatorError, match="3 times in a row; next try in 30 s"):
        evaluator.score("?", ["text"])
    assert len(server.requests) == 3
    now[0] = 30.0
    assert circuit.wait() == 0.0  # This one tries,
    assert circuit.wait() == 30.0  # and the others wait.
    circuit.failed()
    now[0] = 60.0
    assert evaluator.score("?", ["text"]) == [0.5]
    assert circuit.wait() == 0.0


def test_another_evaluator_judges_by_its_own_thresholds() -> None:
    second = FakeEvaluator(0.4, upper=0.3, lower=0.1)
    evaluator = with_fallback(RemoteEvaluator(NOWHERE), second, "default")
    with noting("grade") as events:
        assert evaluator.score("?", ["text"]) == [0.4]
    assert evaluator.thresholds == {"upper": 0.3, "lower": 0.1}
    assert kinds(events)[-1] == "evaluator_replaced"
    assert "'default' judges" in events[-1]["fallback"]


def test_each_judges_by_its_own_thresholds_in_turn(server: Loopback) -> None:
    second = FakeEvaluator(0.4, upper=0.3, lower=0.1)
    evaluator = with_fallback(RemoteEvaluator(server.url), second, "default")
    for statuses, score, upper in (([], 0.5, 0.75), ([404], 0.4, 0.3), ([], 0.5, 0.75)):
        server.statuses = statuses
        assert evaluator.score("?", ["text"]) == [score]
        assert evaluator.thresholds["upper"] == upper


def test_it_reads_if_both_do() -> None:
    reader, scorer = FakeReadingEvaluator(0.9, "text"), FakeEvaluator()
    evaluator = with_fallback(RemoteReader(NOWHERE), reader, "reader")
    assert is_reading(evaluator)
    (reading,) = evaluator.read("?", [Passage("", "text")])
    assert reading["score"] == 0.9
    assert evaluator.quote_threshold == reader.quote_threshold
    assert not is_reading(with_fallback(RemoteReader(NOWHERE), scorer, "scorer"))


def test_a_run_records_it_and_decides_by_who_judged(make_parts: Any) -> None:
    second = FakeEvaluator(0.4, upper=0.3, lower=0.1)
    evaluator = with_fallback(RemoteEvaluator(NOWHERE), second, "default")
    state = build_crag(make_parts(evaluator=evaluator)).invoke({"question": "Who?"})
    assert state["action"] == "correct"
    assert state["thresholds"] == {"upper": 0.3, "lower": 0.1}
    replaced = [one for one in state["events"] if one["kind"] == "evaluator_replaced"]
    assert {one["node"] for one in replaced} == {"grade", "refine"}
    assert "circuit_opened" in kinds(state["events"])


def test_a_run_is_decided_by_the_calibration_of_the_service(
    server: Loopback, make_parts: Any
) -> None:
    server.body = reply(0.5, 0.5)
    graph = build_crag(make_parts(evaluator=load_evaluator(server.url, reads=False)))
    server.statuses = []
    state = graph.invoke({"question": "Who?"})
    assert state["action"] == "ambiguous"
    assert state["thresholds"] == {"upper": 0.75, "lower": 0.25}
    assert state["scores"] == [0.5, 0.5]


def test_the_environment_names_service_and_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_EVALUATOR", NOWHERE)
    with pytest.raises(EvaluatorError, match=NOWHERE):
        choose_evaluator(Environment())
    monkeypatch.setenv("CRAG_EVALUATOR_FALLBACK", "reader")
    assert is_reading(choose_evaluator(Environment()))
    monkeypatch.setenv("CRAG_EVALUATOR_FALLBACK", "cosine")
    assert not is_reading(choose_evaluator(Environment()))
    told = {one.part: one for one in examine(Environment(), use=False)}
    assert (told["evaluator"].state, told["fallback"].in_use.split()[0]) == ("ready", "cosine")


@pytest.mark.parametrize(
    "url", ["http://", "http://h:99999", "http://u:p@host", "http://host/?q=1", "https://host#f"]
)
def test_a_wrong_address_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(EvaluatorError) as raised:
        load_evaluator(url)
    assert "u:p" not in str(raised.value)


def test_nothing_is_sent_for_empty_texts(server: Loopback) -> None:
    assert RemoteEvaluator(server.url).score("?", ["", " "]) == [-1.0, -1.0]
    assert server.requests == []


def test_a_text_without_a_score_is_not_a_number(server: Loopback) -> None:
    server.body = reply(None)
    assert math.isnan(RemoteEvaluator(server.url).score("?", ["text"])[0])


class _Broken(FakeReadingEvaluator):
    """Judges, but cannot say by which thresholds."""

    @property
    def thresholds(self) -> Any:
        raise OSError("the service is gone")

    @property
    def quote_threshold(self) -> float:
        raise OSError("the service is gone")


def test_who_cannot_tell_its_thresholds_is_replaced() -> None:
    second = FakeReadingEvaluator(0.4, upper=0.3, lower=0.1)
    evaluator = with_fallback(_Broken(0.9), second, "default")
    with noting("grade") as events:
        assert evaluator.score("?", ["text"]) == [0.9]
        assert evaluator.thresholds == {"upper": 0.3, "lower": 0.1}
    assert kinds(events) == ["evaluator_replaced"]
    assert "the service is gone" in events[0]["detail"]
    evaluator = with_fallback(_Broken(0.9), second, "default")
    assert is_reading(evaluator)
    assert evaluator.quote_threshold == second.quote_threshold
    assert evaluator.thresholds == {"upper": 0.3, "lower": 0.1}


def test_the_first_reader_is_asked_while_it_reads() -> None:
    first = FakeReadingEvaluator(0.9, "text", upper=0.8)
    evaluator = with_fallback(first, FakeReadingEvaluator(0.1), "default")
    assert is_reading(evaluator)
    (reading,) = evaluator.read("?", [Passage("", "text")])
    assert reading["score"] == 0.9
    assert evaluator.quote_threshold == first.quote_threshold
    assert evaluator.thresholds["upper"] == 0.8


def test_doctor_asks_a_service_for_its_name(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_EVALUATOR", server.url)
    server.body = ABOUT
    RemoteEvaluator(server.url).verify()
    assert server.requests[0]["path"] == "/about"
    server.statuses = [404]
    told = {one.part: one for one in examine(Environment())}["evaluator"]
    assert (told.state, told.in_use) == ("broken", server.url)
    assert "status 404" in told.todo


def test_a_service_that_drips_its_reply_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            for _ in range(3):
                connection, _ = listening.accept()
                with connection, suppress(ConnectionError):
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
                    for _ in range(100):
                        connection.sendall(b" ")
                        time.sleep(0.01)

        dripping = threading.Thread(target=drip)
        dripping.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(EvaluatorError, match=r"no whole reply within 0\.1 s"):
            RemoteEvaluator(url, seconds=0.1).score("?", ["text"])
        dripping.join()
