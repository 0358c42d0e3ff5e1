"""Labels of a critic's cases by a chat model, as GPT-4 gave them for the paper.

The model is shown as many judged cases as the paper shows: seven for Retrieve from the input alone,
one before a later sentence, two for IsRel, one for IsSup, two for IsUse (Self-RAG, Appendix on data
creation). The cases, in papers/prompts/critic_cases.jsonl, are ours.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel, Field, create_model

import crag.papers
from crag.papers.loading.records import Ledger, read_objects
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
from crag.reflection.backends.prompted import Call, FormAsker, Said

NO_LABEL = "the reply is no label of its kind"
_REASONS = {
    "refused": "the model refused",
    "empty": "the model replied with nothing",
    "failed": "the call failed",
}


class Judgement(NamedTuple):
    """What a judge said of one case."""

    label: str
    """Empty if the judge gave none that can be used."""
    problem: str = ""
    """Why there is no label, in a few words; equal problems are counted together."""


Judge = Callable[[Sequence[Case]], Sequence[Judgement]]
"""Judges cases and returns one judgement for each, in order."""


class Labelled(NamedTuple):
    """What a judge made of the cases."""

    cases: list[LabelledCase]
    rejected: dict[str, int]
    """Cases without a label, counted by reason."""
    agreement: dict[str, float]
    """For each kind: the share of the labels that are those of the rule."""


def label_cases(  # noqa: PLR0913 - a run has these options
    cases: Sequence[LabelledCase],
    judge: Judge,
    ledger: Ledger,
    *,
    name: str,
    batch: int = 32,
    attempts: int = 3,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Labelled:
    """Replace the label of each case by that of a judge, `batch` cases at a time.

    A case without a usable label is asked for again, `attempts` times in all, and then rejected for
    the last reason. What the ledger holds is not asked for again.
    """
    waiting = [case for case in cases if case.key not in ledger.made]
    for start in range(0, len(waiting), batch):
        asked: Sequence[Case] = waiting[start : start + batch]
        for attempt in range(attempts):
            judged = list(zip(asked, judge(asked), strict=True)) if asked else []
            for case, said in judged:
                if said.label in LABELS[case.kind]:
                    ledger.add(case.key, {"label": said.label})
                elif attempt == attempts - 1:
                    ledger.add(case.key, {"label": "", "problem": said.problem or NO_LABEL})
            asked = [case for case in asked if case.key not in ledger.made]
        progress(len(ledger.made), len(cases))
    made = [(case, ledger.made[case.key]) for case in cases]
    labelled = [(case, one["label"]) for case, one in made if one["label"]]
    kinds = Counter(case.kind for case, _ in labelled)
    same = Counter(case.kind for case, label in labelled if label == case.label)
    return Labelled(
        [case.model_copy(update={"label": label, "source": name}) for case, label in labelled],
        dict(Counter(one["problem"] for _, one in made if not one["label"])),
        {kind: round(same[kind] / count, 4) for kind, count in kinds.items()},
    )


def chat_judge(model: ChatModel, *, prompts: Prompts = PACKAGED, concurrency: int = 8) -> Judge:
    """Return a judge that asks a chat model for one label a case, all cases at the same time.

    The replies are structured output where the model has it, and JSON otherwise. A first batch of
    which every call failed raises, since nothing better will follow.

    Raises:
        ModelError: by the judge, if all calls of its first batch failed.
    """
    forms = {kind: _form(kind) for kind in KINDS}
    asker = FormAsker(model, concurrency=concurrency)
    each = RunnableLambda(asker.ask)
    worked: list[bool] = []

    def judge(cases: Sequence[Case]) -> list[Judgement]:
        calls = [_call(case, forms[case.kind], prompts) for case in cases]
        said = each.batch(calls, {"max_concurrency": concurrency})
        failed = [one for one in said if one.reply.problem == "failed"]
        if not worked and len(failed) == len(said):
            raise asker.failure(failed[0])
        worked.append(True)
        return [_judgement(one) for one in said]

    return judge


def _form(kind: Kind) -> type[BaseModel]:
    # The schema names the labels, but only we refuse others: an error that a client raises while it
    # reads a reply would hide what the reply has cost.
    names: list[Any] = [label.strip("[]") for label in LABELS[kind]]
    label = Field(description="The label", json_schema_extra={"enum": names})
    reason = Field(default="", description="One short sentence")
    name = f"{kind.title().replace('_', '')}Label"
    return create_model(name, reason=(str, reason), label=(str, label))


def _call(case: Case, form: type[BaseModel], prompts: Prompts) -> Call:
    labels = ", ".join(f'"{label.strip("[]")}"' for label in LABELS[case.kind])
    shown = "".join(case_text(case)).replace("</case", "‹/case")
    values = {
        "task": TASKS[case.kind], "labels": labels, "case": shown.strip(),
        "examples": demonstrations()[case.kind],
    }  # fmt: skip
    return Call(form, prompts.render("critic_label", **values))


@cache
def demonstrations() -> dict[Kind, str]:
    """Return the judged cases of each kind, each with the reply to it."""
    shown: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
    for row in read_objects(Path(crag.papers.__file__).parent / "prompts" / "critic_cases.jsonl"):
        reply = json.dumps({"reason": row.pop("reason"), "label": row.pop("label").strip("[]")})
        case = Case.model_validate(row)
        text = "".join(case_text(case)).strip()
        shown[case.kind].append(f"<case>\n{text}\n</case>\n{reply}")
    return {kind: "\n\n".join(texts) for kind, texts in shown.items()}


def _judgement(said: Said) -> Judgement:
    label = getattr(said.form, "label", None)
    if label is not None:
        return Judgement(f"[{label.strip().strip('[]')}]")
    return Judgement("", _REASONS.get(said.reply.problem or "", NO_LABEL))
