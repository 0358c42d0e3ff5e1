"""A chat model as the judge of `crag reflect-data critic`: structured replies."""

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel, Field, create_model

from crag.papers.self_rag.critique_cases import KINDS, LABELS, TASKS, Case, Kind, case_text
from crag.papers.self_rag.critique_demonstrations import demonstrated
from crag.papers.self_rag.critique_labels import NO_LABEL, Judge, Judgement
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.reflection.backends.prompted import Call, FormAsker, Said

_REASONS = {
    "refused": "the model refused",
    "empty": "the model replied with nothing",
    "failed": "the call failed",
}


class _Verdict(BaseModel):
    reason: str = Field(default="", description="One short sentence")


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
    names: list[Any] = [name_of(label) for label in LABELS[kind]]
    field = Field(description="The label", json_schema_extra={"enum": names})
    return create_model(
        f"{kind.title().replace('_', '')}Label", __base__=_Verdict, label=(str, field)
    )


def name_of(token: str) -> str:
    """Return a token without its brackets, as a chat model writes it."""
    return token.strip("[]")


def _call(case: Case, form: type[BaseModel], prompts: Prompts) -> Call:
    labels = ", ".join(f'"{name_of(label)}"' for label in LABELS[case.kind])
    shown = "".join(case_text(case)).replace("</case", "‹/case")
    values = {
        "task": TASKS[case.kind], "labels": labels, "case": shown.strip(),
        "examples": demonstrated(case.kind),
    }  # fmt: skip
    return Call(form, prompts.render("critic_label", **values))


def _judgement(said: Said) -> Judgement:
    label = getattr(said.form, "label", None)
    if label is not None:
        return Judgement(f"[{name_of(label.strip())}]")
    return Judgement("", _REASONS.get(said.reply.problem or "", NO_LABEL))
