"""The released critic: the records of its data, its prompts, and labels that it writes as words.

Its data are a JSON array of `instruction`, `input`, `output` and `task`; its checkpoint knows no
reflection token and writes each label out. What it was trained on must match to the letter, so its
instructions are read from its data.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.errors import SettingsError
from crag.papers.loading.records import read_records
from crag.papers.self_rag.critique_cases import Case, Kind, LabelledCase

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RELEASED_PAD = "[PAD]"
"""The one token that the released critic adds to Llama's; by it a checkpoint is recognised."""

_INPUTS: Mapping[Kind, str] = {
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
_KINDS: Mapping[str, Kind] = {
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
    retrieves: Kind = "retrieve_next" if "\nEvidence: " in shown else "retrieve"
    kind = _KINDS.get(task, retrieves)
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
        "wording": row.get("instruction", ""),
        "source": "released",
        "group": given["instruction"],  # No instruction is on both sides of a split.
        **given,
    }


Wording = Mapping[Kind, str]
"""The instruction of each kind of judgement."""
NO_WORDING: Wording = {}


def released_wording(file: Path | None, kinds: Collection[Kind]) -> Wording:
    """Return the instruction of each kind that is most common in the released critic's data.

    Raises:
        SettingsError: it has none of one of `kinds`, or there is no file.
        DataError: the file cannot be read.
    """
    records = read_records(file, LabelledCase) if file else []
    counts: Counter[tuple[Kind, str]] = Counter(
        (case.kind, case.wording) for case in records if case.wording
    )
    wording: dict[Kind, str] = dict(pair for pair, _ in reversed(counts.most_common()))
    missing: list[Kind] = [kind for kind in kinds if kind not in wording]
    if missing:
        raise _lacking(missing, file)
    return wording


def _lacking(kinds: Collection[Kind], file: Path | None = None) -> SettingsError:
    allowed = (
        "a critic in the released form is asked in the words of its data, and there is no "
        f"instruction for {', '.join(kinds)}. Give the data file of the released critic "
        "(records of instruction, input, output and task), such as --set wording=critic_data.json"
    )
    return SettingsError("wording", file and str(file), allowed)


def released_preamble(file: Path | None) -> str:
    """Return a text file as it is, line breaks included; without a file, nothing.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        return file.read_bytes().decode() if file else ""
    except (OSError, UnicodeDecodeError) as error:
        allowed = f"give a text file in UTF-8: {error}"
        raise SettingsError("preamble", str(file), allowed) from error


def released_prompt(
    case: Case, wording: Wording = NO_WORDING, preamble: str = ""
) -> tuple[str, str, str]:
    """Return the released prompt before, within and after the evidence; the label follows at once.

    Of a record of the released data it is the record's own instruction and input.

    Raises:
        SettingsError: neither the case nor `wording` has an instruction.
    """
    task = case.wording or wording.get(case.kind)
    if not task:
        raise _lacking([case.kind])
    before = f"Task instruction: {case.instruction}"
    if case.kind == "retrieve_next" or (case.kind == "support" and case.preceding):
        before += f"\nPreceding sentences: {case.preceding}"
    after = ""
    if case.kind in {"support", "utility"}:
        before += f"\nOutput: {case.output}"
    if case.kind in {"relevance", "support", "retrieve_next"}:
        before += "\nEvidence: "
    if case.kind == "retrieve_next":
        after = f"\nOutput: {case.output}"
    head = f"{preamble}### Instruction:\n{task}\n\n### Input:\n{before}"
    return head, case.evidence, f"{after}\n\n### Response:"


class WrittenLabel(NamedTuple):
    """A prompt with a label written out after it, as tokens."""

    ids: list[int]
    start: int
    """Place of the label's first token."""


def written_label(
    tokenizer: "PreTrainedTokenizerBase", parts: tuple[str, str, str], label: str, most: int
) -> WrittenLabel | None:
    """Return a prompt with its label, at most `most` tokens; the evidence is cut to fit.

    None if it does not fit even without its evidence.
    """
    before, evidence, after = parts
    while True:
        text = before + evidence + after
        # Together, because some tokenizers begin a text that stands alone with a space.
        ids: list[int] = tokenizer(text + label).input_ids
        if len(ids) <= most:
            alone: list[int] = tokenizer(text).input_ids
            same = [one == other for one, other in zip(alone, ids, strict=False)]
            return WrittenLabel(ids, same.index(False) if False in same else len(alone))
        if not evidence:
            return None
        pieces: list[int] = tokenizer(evidence, add_special_tokens=False).input_ids
        shorter = str(tokenizer.decode(pieces[: max(0, len(pieces) - (len(ids) - most))]))
        evidence = shorter if len(shorter) < len(evidence) else evidence[:-1]
