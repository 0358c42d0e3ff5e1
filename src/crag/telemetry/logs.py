"""Logs as JSON, one object a line, that hold no text and no key.

Messages of a log are written by programmers, but what is put into them is not. Of the arguments
only numbers, ids and names of exceptions are told, and of other libraries not even the messages.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

_OURS = ("crag", "uvicorn")
"""Loggers whose messages are constants with arguments."""
_EXCEPTION = re.compile(
    r"[A-Z]\w{2,60}(Error|Exception|Timeout|Closed|Canceled|Cancelled|Shutdown|Refused|Requests)"
)
_HIDDEN = "…"


class JsonFormatter(logging.Formatter):
    """Format a record: time, level, logger, message, and what its `extra` has as `told`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time, "level": record.levelname.lower(), "logger": record.name,
        }  # fmt: skip
        if record.name.partition(".")[0] in _OURS:
            line["message"] = _message(record)
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line | getattr(record, "told", {}), ensure_ascii=False, default=str)


def write_json_logs() -> None:
    """Write the logs of this process to standard error as JSON: those of crag from INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    logging.getLogger("crag").setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error"):  # It brings handlers of its own.
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
    logging.captureWarnings(capture=True)


UVICORN: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "crag.telemetry.logs.JsonFormatter"}},
    "handlers": {"json": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["json"]},
    "loggers": {"uvicorn": {"level": "INFO"}},
}
"""The same for uvicorn, whose first process runs nothing of crag; its `--log-config`."""


def _message(record: logging.LogRecord) -> str:
    arguments = record.args if isinstance(record.args, tuple) else (record.args,)
    shown = tuple(map(_shown, arguments)) if record.args else ()
    try:
        return str(record.msg) % shown if shown else str(record.msg)
    except (TypeError, ValueError):  # A hidden argument where the message wants a number.
        return str(record.msg)


def _shown(argument: object) -> object:
    if isinstance(argument, bool | int | float | UUID):
        return argument
    if isinstance(argument, BaseException):
        return type(argument).__name__
    is_name = isinstance(argument, str) and _EXCEPTION.fullmatch(argument)
    return argument if is_name else _HIDDEN
