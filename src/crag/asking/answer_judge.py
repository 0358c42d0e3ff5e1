"""A chat model that judges answers: `crag evaluate --judge`.

One call for each answer. ragas, which has such judges, cannot be installed beside what `crag`
needs: the guide says why.
"""

from collections.abc import Callable, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from crag.answering.citations import without_citations
from crag.answering.context import fenced
from crag.answering.model_calls import Reply, aask
from crag.asking.evaluation import Judgement, Row, mean
from crag.asking.running import in_order
from crag.parts import ChatModel
from crag.plain import filled
from crag.prompts import PACKAGED, Prompts
from crag.text.untrusted import neutral


class JudgeSummary(TypedDict):
    """Means over the answers that were judged; None without any."""

    judged: int
    supported: float | None
    relevant: float | None
    agrees: float | None
    problems: int


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True)

    statements: int = Field(ge=0, le=1000)
    supported: int = Field(ge=0)
    relevant: bool
    agrees: bool | None = None

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self.supported > self.statements:
            message = "more statements are supported than there are"
            raise ValueError(message)
        return self


class AnswerJudge:
    """Judges answers with a chat model; abstentions and failed runs are left out."""

    def __init__(self, model: ChatModel, prompts: Prompts = PACKAGED) -> None:
        self._model, self._prompts = model, prompts

    async def judge(
        self,
        rows: Sequence[Row],
        *,
        concurrency: int = 4,
        progress: Callable[[int], object] = lambda _: None,
    ) -> list[Judgement]:
        """Return a judgement for each row, in order; `progress` receives the number done."""
        return await in_order(rows, self._judged, concurrency=concurrency, progress=progress)

    async def _judged(self, row: Row) -> Judgement:
        if row["verdict"] in {"abstained", "failed"} or not row["strips"] or not row["answerable"]:
            return Judgement(supported=None, relevant=None, agrees=None, problem="")
        kept = [strip for strip in row["strips"] if strip["kept"]]
        messages = self._prompts.render(
            "judge_answer",
            question=neutral(row["question"]),
            answer=neutral(without_citations(row["answer"])),
            knowledge=fenced(kept),
            right="\n".join(map(neutral, row["answers"])) or "none is given",
        )
        return _read(await aask(self._model, messages), has_right=bool(row["answers"]))


def summarise_judgements(found: Sequence[Judgement]) -> JudgeSummary:
    """Take the means."""
    return JudgeSummary(
        judged=sum(one["relevant"] is not None for one in found),
        supported=mean([one["supported"] for one in found]),
        relevant=mean([one["relevant"] for one in found]),
        agrees=mean([one["agrees"] for one in found]),
        problems=sum(bool(one["problem"]) for one in found),
    )


def _read(reply: Reply, *, has_right: bool) -> Judgement:
    nothing = Judgement(supported=None, relevant=None, agrees=None, problem="")
    if reply.problem is not None:
        return {**nothing, "problem": f"the judge failed: {reply.detail}"}
    said = filled(_Reply, reply.text)
    if said is None:
        return {**nothing, "problem": f"the judge's reply cannot be read: {reply.text[:80]!r}"}
    return Judgement(
        supported=said.supported / said.statements if said.statements else None,
        relevant=said.relevant,
        agrees=said.agrees if has_right else None,
        problem="",
    )
