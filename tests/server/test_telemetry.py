"""What a server tells of its runs: to a collector and in its log."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.asking import INPUT, QUESTION
from tests.server.chat import ANSWER
from tests.server.conftest import KEY
from tests.telemetry.receiver import Receiver

pytestmark = pytest.mark.slow
_SECONDS = 30


def eventually(found: Callable[[], Any]) -> Any:
    """Return what is found once it is there: telemetry is sent once in a while."""
    end = time.monotonic() + _SECONDS
    while not (seen := found()) and time.monotonic() < end:
        time.sleep(0.1)
    return seen


def test_a_run_is_a_trace_a_count_and_a_line(
    client: Any, receiver: Receiver, folder: Path, *, production: bool
) -> None:
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "crag", input=INPUT)

    def lines() -> list[dict[str, Any]]:
        log = (folder / "server.log").read_text("utf-8").splitlines()
        told = [json.loads(line) for line in log if line.startswith('{"time"')]
        return [one for one in told if one.get("thread_id") == thread]

    (line,) = eventually(lines)
    assert (line["message"], line["graph"], line["outcome"]) == ("question", "crag", "answered")

    def spans() -> list[Any]:
        found = [one for one in receiver.spans if one.trace_id.hex() == line["trace_id"]]
        return found if any(not one.parent_span_id for one in found) else []

    names = {one.name for one in eventually(spans)}
    assert {"invoke_workflow crag", "retrieve", "grade", "generate", "chat local"} <= names
    wanted = {"crag.questions", "crag.node.duration", "gen_ai.client.operation.duration"}
    if production:
        wanted |= {"crag.queue.length", "crag.queue.duration", "crag.runs.running"}
    assert eventually(lambda: wanted <= {one.name for one in receiver.metrics})
    sent = b"".join(receiver.bodies) + json.dumps(line).encode()
    assert [text for text in (QUESTION, ANSWER, KEY) if text.encode() in sent] == []
