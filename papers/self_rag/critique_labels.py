"""Labels of a critic's cases by a chat model, as GPT-4 gave them for the paper.

The model is shown as many judged cases as the paper shows: seven for Retrieve from the input alone,
one before a later sentence, two for IsRel, one for IsSup, two for IsUse (Self-RAG, Appendix on data
creation). The cases, in papers/prompts/critic_cases.jsonl, are ours.
"""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, create_model

import crag.papers
from crag.answering.forms import Call, FormAsker
from crag.papers.files import numbered_objects
from crag.papers.self_rag.critique_cases import (
    KINDS,
    LABELS,
    TASKS,
    Case,
    Kind,
    LabelledCase,
    case_text,
)
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts

NO_LABEL = "the reply is no label of its kind"
_REASONS = {
    "refused": "the model refused",
    "empty": "the model replied with nothing",
    "failed": "the call failed",
}


class Labelled(NamedTuple):
    """What a chat model made of the cases."""

    cases: list[LabelledCase]
    rejected: dict[str, int]
    """Cases without a label, counted by reason."""
    agreement: dict[str, float]
    """For each kind: the share of the labels that are those of the rule."""


def label_cases(
    cases: Sequence[LabelledCase],
    model: ChatModel,
    *,
    name: str = "",
    prompts: Prompts = PACKAGED,
    concurrency: int = 8,
) -> Labelled:
    """Replace the label of each case by that of a chat model, which is asked once for each.

    Raises:
        ModelError: no reply can be used.
    """
    labelled: list[LabelledCase] = []
    rejected: Counter[str] = Counter()
    same: dict[str, list[bool]] = {}
    asker = FormAsker(model)
    replies = asker.ask_all([_call(case, prompts) for case in cases], concurrency)
    if replies and all(said.form is None for said in replies):
        raise asker.failure(replies[0])
    for case, said in zip(cases, replies, strict=True):
        label = f"[{getattr(said.form, 'label', '').strip().strip('[]')}]"
        if label not in LABELS[case.kind]:
            rejected[_REASONS.get(said.reply.problem or "", NO_LABEL)] += 1
            continue
        labelled.append(case.model_copy(update={"label": label, "source": name}))
        same.setdefault(case.kind, []).append(label == case.label)
    agreement = {kind: round(sum(found) / len(found), 4) for kind, found in same.items()}
    return Labelled(labelled, dict(rejected), agreement)


@cache
def _form(kind: Kind) -> type[BaseModel]:
    # The schema names the labels, but only we refuse others: an error that a client raises while it
    # reads a reply would hide what the reply has cost.
    names: list[Any] = [label.strip("[]") for label in LABELS[kind]]
    label = Field(description="The label", json_schema_extra={"enum": names})
    reason = Field(default="", description="One short sentence")
    name = f"{kind.title().replace('_', '')}Label"
    return create_model(name, reason=(str, reason), label=(str, label))


def _call(case: Case, prompts: Prompts) -> Call:
    labels = ", ".join(f'"{label.strip("[]")}"' for label in LABELS[case.kind])
    shown = "".join(case_text(case)).replace("</case", "‹/case")
    values = {
        "task": TASKS[case.kind], "labels": labels, "case": shown.strip(),
        "examples": demonstrations()[case.kind],
    }  # fmt: skip
    return Call(_form(case.kind), prompts.render("critic_label", **values))


@cache
def demonstrations() -> dict[Kind, str]:
    """Return the judged cases of each kind, each with the reply to it."""
    shown: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
    cases = Path(crag.papers.__file__).parent / "prompts" / "critic_cases.jsonl"
    for _, row in numbered_objects(cases):
        reply = json.dumps({"reason": row.pop("reason"), "label": row.pop("label").strip("[]")})
        case = Case.model_validate(row)
        text = "".join(case_text(case)).strip()
        shown[case.kind].append(f"<case>\n{text}\n</case>\n{reply}")
    return {kind: "\n\n".join(texts) for kind, texts in shown.items()}
