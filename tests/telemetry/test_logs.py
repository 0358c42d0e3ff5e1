"""Logs as JSON tell what happened, and neither texts nor keys."""

import json
import logging
from typing import Any
from uuid import UUID

import pytest

from crag.telemetry.logs import JsonFormatter

RUN = UUID(int=7)


def line(logger: str, message: str, *arguments: Any, **more: Any) -> dict[str, Any]:
    record = logging.getLogger(logger).makeRecord(
        logger, logging.WARNING, "file.py", 1, message, arguments, None, extra=more
    )
    found: dict[str, Any] = json.loads(JsonFormatter().format(record))
    assert (found.pop("level"), found.pop("logger")) == ("warning", logger)
    assert found.pop("time").endswith("+00:00")
    return found


@pytest.mark.parametrize(
    ("message", "arguments", "expected"),
    [
        ("Run %s failed after %d s", (RUN, 3), f"Run {RUN} failed after 3 s"),
        ("%s failed: %s", ("the model", "PoolTimeout"), "… failed: PoolTimeout"),
        ("asked %s", (ValueError("Who wrote it?"),), "asked ValueError"),
        ("%d of %s", ("Who wrote it?", "sk-planted-0123456789"), "%d of %s"),
        ("100 % done", (), "100 % done"),
        ("%(name)s", ({"name": "Who?"},), "%(name)s"),
    ],
)
def test_only_numbers_ids_and_names_of_errors_are_put_into_messages(
    message: str, arguments: tuple[Any, ...], expected: str
) -> None:
    assert line("crag.serve", message, *arguments) == {"message": expected}


def test_other_libraries_and_errors_tell_no_message() -> None:
    assert line("httpx", "GET https://example.org/?q=Who+wrote+it") == {}
    error = ValueError("Who wrote it?")
    record = logging.LogRecord(
        "crag", logging.ERROR, "file.py", 1, "no answer", (), (ValueError, error, None)
    )
    told = JsonFormatter().format(record)
    assert json.loads(told)["error"] == "ValueError"
    assert "Who" not in told


def test_what_a_record_tells_besides_is_told() -> None:
    told = {"part": "model", "error": "KeyError"}
    assert line("crag", "%s failed", "model", told=told) == {"message": "… failed", **told}
