"""What a critic judges and the labels it gives: the records of its data, and its prompt."""

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from crag.parts import Passage
from crag.reflection_tokens import NO_RETRIEVAL, RELEVANCE, RETRIEVAL, RETRIEVE, SUPPORT, UTILITY
from crag.text.untrusted import neutral

Kind = Literal["retrieve", "retrieve_next", "relevance", "support", "utility"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LABELS: Mapping[Kind, tuple[str, ...]] = {
    "retrieve": (NO_RETRIEVAL, RETRIEVAL),
    "retrieve_next": RETRIEVE,
    "relevance": RELEVANCE,
    "support": SUPPORT,
    "utility": UTILITY,
}
"""The labels of each kind: Retrieve from the input alone, Retrieve before a later sentence, IsRel,
IsSup and IsUse (Self-RAG, Table 1 and Sec. 3.2.1)."""

TASKS: Mapping[Kind, str] = {
    "retrieve": (
        "Decide whether finding documents would make the answer to this instruction better. "
        "[Retrieval]: it rests on facts that a document can confirm or complete. [No Retrieval]: "
        "everything that is needed is given, or it is a matter of invention or calculation."
    ),
    "retrieve_next": (
        "Decide what the output sentence needs, given what precedes it and the evidence. "
        "[Retrieval]: it states facts that the evidence does not hold. [Continue to Use Evidence]: "
        "the evidence holds what it states. [No Retrieval]: it states nothing to be checked."
    ),
    "relevance": (
        "Decide whether the evidence helps to carry out the instruction. [Relevant]: it holds "
        "useful information. [Irrelevant]: it does not, even if the subject is the same."
    ),
    "support": (
        "Decide how far the evidence bears out what the output states; use no other knowledge. "
        "[Fully supported]: all of it. [Partially supported]: a part of it. [No support / "
        "Contradictory]: nothing of it, or the evidence contradicts it."
    ),
    "utility": (
        "Rate how useful the output is as a response to the instruction, whether it is true or "
        "not. [Utility:5]: complete and detailed. [Utility:4]: answers it, with small gaps. "
        "[Utility:3]: usable, with large gaps. [Utility:2]: on the subject, without what was "
        "asked. [Utility:1]: hardly on the subject."
    ),
}
"""What each kind of judgement asks for, for the critic and for a chat model that labels."""

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
_RELEASED_KINDS = {
    "utility": "utility",
    "relevance": "relevance",
    "groudness": "support",  # Spelt so in the released data.
    "multi_retrieval": "retrieve_next",
}


class Case(BaseModel):
    """What is to be judged; the fields that a kind does not need are empty."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Kind
    instruction: str = Field(min_length=1)
    preceding: str = ""
    """The sentences written before the output."""
    evidence: str = ""
    """Title and text of a passage, on two lines or more."""
    output: str = ""
    """The sentence to judge; for IsUse the whole response."""
    group: str = ""
    """The article or question it was made from: what shares it stays on one side of a split."""

    @property
    def key(self) -> str:
        """A digest of what is judged; the same for the same case."""
        judged = [self.kind, self.instruction, self.preceding, self.evidence, self.output]
        return hashlib.sha256(json.dumps(judged).encode()).hexdigest()


class LabelledCase(Case):
    """A case with its label; a record of the released critic's data is read as one, too."""

    label: str
    source: str = ""
    """Where the label comes from: `rule`, `released`, or the name of a chat model."""

    @model_validator(mode="before")
    @classmethod
    def _from_released(cls, row: Any) -> Any:
        is_released = isinstance(row, Mapping) and "task" in row and "kind" not in row
        return released_fields(row) if is_released else row

    @model_validator(mode="after")
    def _is_of_its_kind(self) -> "LabelledCase":
        if self.label not in LABELS[self.kind]:
            message = f"{self.label!r} is no label of {self.kind}: {', '.join(LABELS[self.kind])}"
            raise ValueError(message)
        return self


def released_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a labelled case from a record of the released critic's data.

    Raises:
        ValueError: its input is not of the form of its task.
    """
    shown, task = str(row.get("input", "")), str(row.get("task", ""))
    kind = _RELEASED_KINDS.get(task, "retrieve_next" if "\nEvidence: " in shown else "retrieve")
    if task not in {*_RELEASED_KINDS, "retrieval"}:
        message = f"task: {task!r} is none of retrieval, {', '.join(_RELEASED_KINDS)}"
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


def held_out(
    cases: Sequence[LabelledCase], share: float, seed: int
) -> tuple[list[LabelledCase], list[LabelledCase]]:
    """Split off a share of the groups, so that no article is on both sides."""
    groups = sorted({case.group for case in cases})
    random.Random(seed).shuffle(groups)  # noqa: S311 - a split, no secret
    chosen = set(groups[: round(len(groups) * share)])
    rest = [case for case in cases if case.group not in chosen]
    return rest, [case for case in cases if case.group in chosen]


def shown(passage: Passage) -> str:
    """Return a passage as the evidence of a case."""
    return f"{passage.title}\n{passage.text}".strip()


def case_text(case: Case) -> tuple[str, str, str]:
    """Return the fields of a case as a critic reads them: before, within and after the evidence.

    The evidence is apart because it is what can be cut. No field can bring in a token or a tag.
    """
    before = f"Task instruction: {neutral(case.instruction)}\n"
    if case.preceding:
        before += f"Preceding sentences: {neutral(case.preceding)}\n"
    if case.evidence:
        before += "Evidence: "
    after = "\n" if case.evidence else ""
    if case.output:
        after += f"Output: {neutral(case.output)}\n"
    return before, neutral(case.evidence), after


def critic_prompt(case: Case) -> tuple[str, str, str]:
    """Return the critic's prompt in three parts, as `case_text`; the label follows at once."""
    before, evidence, after = case_text(case)
    # Names of the labels in the task are words, not tokens: only the response is a token.
    task = neutral(TASKS[case.kind])
    head = f"### Instruction:\n{task}\n\n### Input:\n{before}"
    return head, evidence, f"{after}\n### Response:\n"
