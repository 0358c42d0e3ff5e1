"""`crag batch`: answer many questions into a file, resumably."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from crag.asking.batch import AnswerFile, Asking, Ended, answer_all
from crag.asking.budget import Budget
from crag.asking.evaluation import read_questions
from crag.cli.terminal import assigned, environment, print_json, progress_bar, safe
from crag.settings import settings_from_text


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    questions: Path,
    location: str | None,
    method: str,
    assignments: Sequence[str],
    output: Path,
    budget: Budget,
    *,
    concurrency: int,
    ray: str | None,
    again: bool,
    as_json: bool,
) -> None:
    """Ask every question that has no answer in `output`, and tell what it cost."""
    found, settings = read_questions(questions), assigned(assignments)
    if budget.prices is not None:
        settings |= dict(zip(("input_price", "output_price"), budget.prices, strict=True))
    settings_from_text(settings)  # Wrong ones are told before anything starts.
    chosen = environment(location)
    asking = Asking(chosen.shared(), method.replace("-", "_"), tuple(sorted(settings.items())))
    with (
        AnswerFile(output, asking.run) as answers,
        progress_bar("asking", quiet=as_json) as advance,
    ):

        def shown(done: int, total: int, cost: float) -> None:
            advance(done, total, f"asking{f' (cost {cost:.4g})' if cost else ''}")

        ended = answer_all(
            found, asking, answers, budget=budget, concurrency=concurrency, ray=ray,
            again=again, progress=shown,
        )  # fmt: skip
    if as_json:
        print_json({**asdict(ended), "output": str(output)})
    else:
        _show(ended, output, Console(highlight=False))


def _show(ended: Ended, output: Path, console: Console) -> None:
    told: dict[str, Any] = {**ended.statuses}
    if ended.resumed:
        told["answered before"] = ended.resumed
    console.print(", ".join(f"{number:,} {name}" for name, number in told.items()) or "nothing")
    if ended.usage.get("llm_calls"):
        cost = f", cost {ended.usage['cost']:.6g}" if ended.usage.get("cost") else ""
        read, written = (ended.usage.get(f"{way}_tokens", 0) for way in ("input", "output"))
        calls = ended.usage["llm_calls"]
        console.print(f"{calls:,} model calls, {read:,} tokens read, {written:,} written{cost}")
    if ended.stopped:
        left = ended.questions - ended.resumed - sum(ended.statuses.values())
        console.print(
            f"[yellow]stopped early:[/] {safe(ended.stopped)}; {left:,} questions left. Run the "
            "same command again with a higher limit to go on"
        )
    console.print(f"answers: {safe(output)}", soft_wrap=True)
