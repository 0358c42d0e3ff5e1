"""`crag reflect-data critic`: labelled cases that a critic is trained on."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import (
    assigned,
    environment,
    print_json,
    print_table,
    progress_bar,
    safe,
    say,
)
from crag.errors import SettingsError, TrainingError
from crag.papers.cli.command import command
from crag.papers.cli.groups import reflect_data
from crag.papers.cli.options import (
    LeftOutOption,
    PassagesArgument,
    RowsOption,
    SeedOption,
)

if TYPE_CHECKING:
    from crag.papers.self_rag.critique_cases import Kind, LabelledCase

_NO_MODEL = "it asks a chat model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL"


@command(
    reflect_data,
    "crag reflect-data critic squad.jsonl --output critic.jsonl",
    "crag reflect-data critic squad.jsonl --output critic.jsonl --chat --each 100",
    name="critic",
)
def critic_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: PassagesArgument,
    output: RowsOption,
    development: LeftOutOption = None,
    each: Annotated[int, typer.Option(min=1, help="Most cases of each label.")] = 1000,
    most: Annotated[
        list[str] | None,
        typer.Option("--most", metavar="KIND=NUMBER", help="The same for one kind; repeatable."),
    ] = None,
    seed: SeedOption = 0,
    chat: Annotated[
        bool, typer.Option("--chat", help="Let the chat model label the cases, not the rules.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls at the same time.")] = 8,
    as_json: JsonOption = False,
) -> None:
    """Make labelled cases for a critic, by rule or with your chat model; run again to resume."""
    from crag.papers.loading.records import require_replaceable, write_records
    from crag.papers.self_rag.critique_cases import KINDS, LABELS, LabelledCase
    from crag.papers.self_rag.critique_rules import critique_cases, unleaked

    require_replaceable(output, LabelledCase)
    truths, leaks = unleaked(data, development or (), seed)
    made = critique_cases(truths, each, seed, most=_limits(assigned(most)))
    dropped = dict(made.dropped) | ({"in the development data": leaks} if leaks else {})
    cases = made.cases
    if not cases:
        message = (
            "the rules could make no kind of case with every label from these data. Give files "
            "with passages that hold an answer, and others of the same article that do not"
        )
        raise TrainingError(message)
    told: dict[str, Any] = {}
    if chat:
        cases, told = _labelled(cases, output, concurrency, quiet=as_json)
    if cases:
        write_records(output, cases)
    counts = Counter((case.kind, case.label) for case in cases)
    listed = {k: {one: counts[k, one] for one in LABELS[k] if counts[k, one]} for k in KINDS}
    result = {"output": str(output), "cases": len(cases), "labels": listed, "left_out": dropped}
    if as_json:
        print_json(result | told)
    else:
        _show(result | told)


def _limits(most: Mapping[str, object]) -> Mapping["Kind", int]:
    from pydantic import PositiveInt, TypeAdapter, ValidationError

    from crag.papers.self_rag.critique_cases import KINDS, Kind

    try:
        return TypeAdapter(dict[Kind, PositiveInt]).validate_python(most)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        allowed = f"one of {', '.join(KINDS)}, and a number from 1"
        raise SettingsError("--most", f"{name}={most.get(name)}", allowed) from error


def _labelled(
    cases: list["LabelledCase"], output: Path, concurrency: int, *, quiet: bool
) -> tuple[list["LabelledCase"], dict[str, Any]]:
    """Let the chat model label the cases; return those it labelled, and what came of the rest."""
    from langchain_core.callbacks import get_usage_metadata_callback

    from crag.factory.parts import choose_model, choose_prompts
    from crag.papers.cli.reflect_labels import chat_judge
    from crag.papers.loading.records import Ledger, digest_of, ledger_of
    from crag.papers.self_rag.critique_labels import label_cases

    place = environment()
    model = choose_model(place)
    if model is None:
        raise SettingsError("--chat", "on", _NO_MODEL)
    prompts = choose_prompts(place)
    name = str(getattr(model, "model_name", "") or type(model).__name__)
    judge = chat_judge(model, prompts=prompts, concurrency=concurrency)
    run = {"model": name, "cases": digest_of(cases), "prompts": prompts.identity}
    with Ledger(ledger_of(output), run) as ledger:
        with (
            progress_bar("labelling", quiet=quiet) as advance,
            get_usage_metadata_callback() as used,
        ):
            labelled = label_cases(cases, judge, ledger, name=name, progress=advance)
        ledger.remove()
    return labelled.cases, {
        "rejected": labelled.rejected,
        "agreement_with_rules": {
            kind: round(same / of, 4) for kind, (same, of) in labelled.agreement.items()
        },
        "tokens": sum(one["total_tokens"] for one in used.usage_metadata.values()),
    }


def _show(result: Mapping[str, Any]) -> None:
    labels = result["labels"].items()
    rows = (
        (kind, safe(label), f"{count:,}")
        for kind, counts in labels
        for label, count in counts.items()
    )
    print_table(rows, "kind", "label", "cases")
    for title, name in (("left out", "left_out"), ("rejected", "rejected")):
        for reason, count in result.get(name, {}).items():
            say(f"{title}: {count:,} {safe(reason)}")
    for kind, share in result.get("agreement_with_rules", {}).items():
        say(f"agrees with the rules on {kind}: {share:.0%}")
    if "tokens" in result:
        say(f"tokens of the chat model: {result['tokens']:,}")
    say(f"Written to {safe(result['output'])}.")
