"""`crag reflect-data`: make the data that a critic and a generator are trained on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import PositiveInt, TypeAdapter, ValidationError
from rich.console import Console

from crag.asking.budget import Budget, Meter
from crag.cli.terminal import environment, plain_table, print_json, progress_bar, safe
from crag.errors import SettingsError, TrainingError
from crag.factory import choose_model, choose_prompts
from crag.papers.commands.train_labels import chat_judge
from crag.papers.commands.train_workers import CriticTools, ray_outcomes
from crag.papers.experiments.resources import metered
from crag.papers.training.self_rag.critique_cases import KINDS, LABELS, Kind, LabelledCase
from crag.papers.training.self_rag.critique_labels import Labelled, label_cases
from crag.papers.training.self_rag.critique_rules import critique_cases, without_leaks
from crag.papers.training.self_rag.generator_data import (
    DataRules,
    generator_data,
    label_shares,
    one_by_one,
    read_instruction_pairs,
)
from crag.papers.training.self_rag.instruction_pairs import instruction_pairs
from crag.papers.training.self_rag.records import Ledger, digest_of, ledger_of, write_records
from crag.papers.training.self_rag.truths import Truth, read_truths

_NO_MODEL = "it asks a chat model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL"


@dataclass(frozen=True, kw_only=True)
class CriticDataOptions:
    """The options of `crag reflect-data critic`."""

    data: Sequence[Path]
    development: Sequence[Path]
    output: Path
    each: int
    most: Mapping[str, object]
    seed: int
    chat: bool
    concurrency: int
    budget: Budget


def make_critic_data(options: CriticDataOptions, *, as_json: bool) -> None:
    """Write the cases, and tell how many of each label there are and what was left out."""
    truths, leaks = unleaked(options.data, options.development, options.seed)
    made = critique_cases(truths, options.each, options.seed, most=_limits(options.most))
    dropped = dict(made.dropped) | ({"in the development data": leaks} if leaks else {})
    cases = made.cases
    told: dict[str, Any] = {}
    if not cases:
        message = (
            "the rules could make no kind of case with every label from these data. Give files "
            "with passages that hold an answer, and others of the same article that do not"
        )
        raise TrainingError(message)
    if options.chat:
        cases, told = _labelled(cases, options, quiet=as_json)
    if cases:
        write_records(options.output, cases)
    counts = Counter((case.kind, case.label) for case in cases)
    listed = {k: {one: counts[k, one] for one in LABELS[k] if counts[k, one]} for k in KINDS}
    result = {"output": str(options.output), "cases": len(cases), "labels": listed,
              "left_out": dropped, **told}  # fmt: skip
    if as_json:
        print_json(result)
        return
    _show(result)


def _limits(most: Mapping[str, object]) -> Mapping[Kind, int]:
    try:
        return TypeAdapter(dict[Kind, PositiveInt]).validate_python(most)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        allowed = f"one of {', '.join(KINDS)}, and a number from 1"
        raise SettingsError("--most", f"{name}={most.get(name)}", allowed) from error


def make_pairs(  # noqa: PLR0913 - the options of the command
    data: Sequence[Path],
    development: Sequence[Path],
    output: Path,
    count: int,
    seed: int,
    *,
    declined: float,
    unsupported: float,
    as_json: bool,
) -> None:
    """Write pairs of instruction and output, and tell how many."""
    truths, leaks = unleaked(data, development, seed)
    pairs = instruction_pairs(truths, count, declined=declined, unsupported=unsupported, seed=seed)
    if not pairs:
        raise TrainingError("no question is left: all of them are in the development data too")
    write_records(output, pairs)
    if as_json:
        print_json({"output": str(output), "pairs": len(pairs), "in_development": leaks})
        return
    told = f"{len(pairs):,} pairs written to {safe(output)}; left out: {leaks:,} in the development"
    Console(highlight=False).print(f"{told} data", soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class GeneratorDataOptions:
    """The options of `crag reflect-data generator`."""

    data: Sequence[Path]
    output: Path
    critic: Path | None
    truth: Sequence[Path]
    location: str | None
    device: str | None
    changes: Mapping[str, object]
    ray: bool = False
    concurrency: int = 2


def make_generator_data(options: GeneratorDataOptions, *, as_json: bool) -> None:
    """Write the records, and tell how many have which token and what was rejected.

    Raises:
        CragError: the critic, the index or the data cannot be used.
    """
    rules = _rules(options.changes)
    pairs = [pair for path in options.data for pair in read_instruction_pairs(path)]
    tools = CriticTools(
        options.critic, tuple(options.truth), options.location, options.device, rules
    )
    if (options.critic is None) == (not options.truth):
        allowed = "give a critic's folder, or --truth with the files the pairs were made from"
        raise SettingsError("--critic", options.critic, allowed)
    run = {
        "rules": rules.model_dump(), "pairs": digest_of(pairs), "passages": tools.passages(),
        "critic": tools.digest(),
    }  # fmt: skip
    if options.ray:
        outcomes = ray_outcomes(tools, options.concurrency)
    else:
        outcomes = one_by_one(*tools.load(), rules)
    with Ledger(ledger_of(options.output), run) as ledger:
        with progress_bar("critiquing", quiet=as_json) as advance:
            made = generator_data(
                pairs, outcomes, ledger, lambda done, total: advance(done, total, "critiquing")
            )
        if not made.records:
            told = ", ".join(f"{count} {reason}" for reason, count in made.rejected.items())
            message = f"no record could be made: {told}. Change the data, the index or the critic"
            raise TrainingError(message)
        write_records(options.output, made.records)
        ledger.remove()
    result = {"output": str(options.output), "records": len(made.records),
              "tokens": dict(label_shares(made.records)), "rejected": made.rejected}  # fmt: skip
    if as_json:
        print_json(result)
        return
    console = Console(highlight=False)
    for token, count in label_shares(made.records).items():
        console.print(f"{count:,} records with {safe(token)}")
    for reason, count in made.rejected.items():
        console.print(f"rejected: {count:,} {safe(reason)}")
    console.print(f"{len(made.records):,} written to {safe(options.output)}.", soft_wrap=True)


def _rules(changes: Mapping[str, object]) -> DataRules:
    try:
        return DataRules.model_validate(changes)
    except ValidationError as error:
        problem = error.errors()[0]
        field = str(problem["loc"][0])
        known = field in DataRules.model_fields
        allowed = problem["msg"] if known else f"there are: {', '.join(DataRules.model_fields)}"
        raise SettingsError(field, changes.get(field), allowed) from error


def unleaked(
    data: Sequence[Path], development: Sequence[Path], seed: int
) -> tuple[list[Truth], int]:
    """Read questions, and leave out what the development files have; return how many that were."""
    truths = [truth for path in data for truth in read_truths(path, seed)]
    evaluation = [truth for path in development for truth in read_truths(path, seed)]
    return without_leaks(truths, evaluation)


def _labelled(
    cases: list[LabelledCase], options: CriticDataOptions, *, quiet: bool
) -> tuple[list[LabelledCase], dict[str, Any]]:
    found = environment(None)
    model = choose_model(found)
    if model is None:
        raise SettingsError("--chat", "on", _NO_MODEL)
    meter = Meter(options.budget)
    name = str(getattr(model, "model_name", "") or type(model).__name__)
    prompts = choose_prompts(found)
    asked = metered(model, None, meter)
    judge = chat_judge(asked, meter, prompts=prompts, concurrency=options.concurrency)
    run = {"model": name, "cases": digest_of(cases), "prompts": prompts.identity}
    with Ledger(ledger_of(options.output), run) as ledger:
        with progress_bar("labelling", quiet=quiet) as advance:
            labelled = label_cases(
                cases, judge, ledger, name=name, stopped=meter.reached,
                progress=lambda done, total: advance(done, total, "labelling"),
            )  # fmt: skip
        if not labelled.left:
            ledger.remove()
    return labelled.cases, _spent(labelled, meter)


def _spent(labelled: Labelled, meter: Meter) -> dict[str, Any]:
    return {
        "rejected": labelled.rejected,
        "agreement_with_rules": {
            kind: round(same / of, 4) for kind, (same, of) in labelled.agreement.items()
        },
        "left": labelled.left,
        "stopped": meter.reached(),
        "spent": {"calls": meter.calls, **meter.tokens, "cost": meter.cost},
    }


def _show(result: Mapping[str, Any]) -> None:
    console = Console(highlight=False)
    table = plain_table("kind", "label", "cases")
    for kind, labels in result["labels"].items():
        for label, count in labels.items():
            table.add_row(kind, safe(label), f"{count:,}")
    console.print(table)
    for title, name in (("left out", "left_out"), ("rejected", "rejected")):
        for reason, count in result.get(name, {}).items():
            console.print(f"{title}: {count:,} {safe(reason)}")
    for kind, share in result.get("agreement_with_rules", {}).items():
        console.print(f"agrees with the rules on {kind}: {share:.0%}")
    if "spent" in result:
        spent = ", ".join(f"{name} {value}" for name, value in result["spent"].items() if value)
        console.print(f"spent: {spent or 'nothing'}")
    if result.get("left"):
        console.print(
            f"[yellow]stopped early:[/] {safe(result['stopped'])}; {result['left']:,} cases left. "
            "Run the same command again to resume"
        )
    console.print(f"Written to {safe(result['output'])}.", soft_wrap=True)
