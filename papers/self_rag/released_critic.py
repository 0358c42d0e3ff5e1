"""Records of the released critic's data: `instruction`, `input`, `output` and `task`."""

import re
from collections.abc import Mapping
from typing import Any

_INPUTS = {
    "retrieve": r"Task instruction: (?P<instruction>.*)",
    "retrieve_next": (
        r"Task instruction: (?P<instruction>.*?)\nPreceding sentences: (?P<preceding>.*?)"
        r"\nEvidence: (?P<evidence>.*?)\nOutput: (?P<output>.*)"
    ),
    "relevance": r"Task instruction: (?P<instruction>.*?)\nEvidence: (?P<evidence>.*)",
    "support": (
        r"Task instruction: (?P<instruction>.*?)(?:\nPreceding sentences: (?P<preceding>.*?))?"
        r"\nOutput: (?P<output>.*?)\nEvidence: (?P<evidence>.*)"
    ),
    "utility": r"Task instruction: (?P<instruction>.*?)\nOutput: (?P<output>.*)",
}
_KINDS = {
    "utility": "utility",
    "relevance": "relevance",
    "groudness": "support",  # Spelt so in the released data.
    "multi_retrieval": "retrieve_next",
}


def released_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a labelled case from a record of the released critic's data.

    Raises:
        ValueError: its input is not of the form of its task.
    """
    shown, task = str(row.get("input", "")), str(row.get("task", ""))
    kind = _KINDS.get(task, "retrieve_next" if "\nEvidence: " in shown else "retrieve")
    if task not in {*_KINDS, "retrieval"}:
        message = f"task: {task!r} is none of retrieval, {', '.join(_KINDS)}"
        raise ValueError(message)
    fields = re.fullmatch(_INPUTS[kind], shown, re.DOTALL)
    if fields is None:
        message = f"input: it has not the fields of the task {task!r}, Task instruction first"
        raise ValueError(message)
    given = {name: text for name, text in fields.groupdict().items() if text is not None}
    return {
        "kind": kind,
        "label": row.get("output"),
        "source": "released",
        "group": given["instruction"],  # No instruction is on both sides of a split.
        **given,
    }
