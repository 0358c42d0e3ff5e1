"""`crag batch`: answer many questions into a file, resumably."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crag.cli.app import app
from crag.cli.commands import command
from crag.cli.options import (
    IndexOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    MethodOption,
    PricesOption,
    RayOption,
    SettingsOption,
)
from crag.cli.terminal import (
    SOME_FAILED,
    assigned,
    environment,
    print_json,
    progress_bar,
    safe,
    say,
    say_stopped,
)
from crag.plain import counted

if TYPE_CHECKING:
    from crag.asking.batch import Ended


@command(
    app,
    "crag batch questions.jsonl --output answers.jsonl",
    "crag batch questions.jsonl --output answers.jsonl --prices 0.15,0.60 --max-cost 5",
    "crag batch questions.jsonl --output answers.jsonl --ray 10.0.0.1:6379",
)
def batch(  # noqa: PLR0913, PLR0917 - one parameter for each option
    questions: Annotated[Path, typer.Argument(help="JSON Lines: question, perhaps with an id.")],
    output: Annotated[
        Path, typer.Option(help="JSON Lines to write; what is in it is not asked again.")
    ],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Questions at the same time; of a cluster, its cores.")
    ] = 4,
    ray: RayOption = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Ask again what failed, or was answered without a part that failed."
        ),
    ] = False,
    max_calls: MaxCallsOption = None,
    max_cost: MaxCostOption = None,
    prices: PricesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer many questions into a file; run the same command again to go on where it ended.

    The exit code is 1 where questions have failed.
    """
    from crag.asking.batch import AnswerFile, Asking, answer_all, contents_of
    from crag.asking.budget import Budget, prices_from_text
    from crag.asking.evaluation import read_questions
    from crag.settings import settings_from_text

    budget = Budget(calls=max_calls, cost=max_cost, prices=prices_from_text(prices))
    asked, chosen = read_questions(questions), assigned(settings)
    if budget.prices is not None:
        chosen |= dict(zip(("input_price", "output_price"), budget.prices, strict=True))
    settings_from_text(chosen)  # Wrong ones are told before anything starts.
    shared = environment(location).shared()
    asking = Asking(
        shared, method.replace("-", "_"), tuple(sorted(chosen.items())), contents_of(shared)
    )
    with (
        AnswerFile(output, asking.run) as answers,
        progress_bar("asking", quiet=as_json) as advance,
    ):
        ended = answer_all(
            asked, asking, answers, budget=budget, concurrency=concurrency, ray=ray, again=again,
            progress=lambda done, total, cost: advance(
                done, total, f"asking (cost {cost:.4g})" if cost else ""
            ),
        )  # fmt: skip
    if as_json:
        print_json({**asdict(ended), "output": str(output)})
    else:
        _report(ended)
        say(f"answers: {safe(output)}")
    if ended.statuses.get("failed") or ended.resumed_failed:
        raise typer.Exit(SOME_FAILED)


def _report(ended: "Ended") -> None:
    counts = {**ended.statuses} | ({"answered before": ended.resumed} if ended.resumed else {})
    say(", ".join(f"{number:,} {name}" for name, number in counts.items()) or "nothing")
    if ended.resumed_failed:
        say(f"[yellow]{ended.resumed_failed:,} of these had failed[/]: --again asks them again")
    if ended.part_failed:
        without = f"{ended.part_failed:,} of them without a part that failed"
        say(f"[yellow]{without}[/]: the answer's events say which; --again asks them again")
    if calls := ended.usage.get("llm_calls"):
        cost = f", cost {ended.usage['cost']:.6g}" if ended.usage.get("cost") else ""
        read, written = (ended.usage.get(f"{way}_tokens", 0) for way in ("input", "output"))
        tokens = f"{counted(read, 'token')} read, {written:,} written"
        say(f"{counted(calls, 'model call')}, {tokens}{cost}")
    if ended.stopped:
        left = ended.questions - ended.resumed - sum(ended.statuses.values())
        say_stopped(ended.stopped, counted(left, "question"))
