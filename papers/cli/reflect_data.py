"""`crag reflect-data`: what the critic and the generator of Self-RAG are trained on."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli.terminal import assigned, environment, print_json
from crag.errors import CragError, SettingsError
from crag.papers.cli.command import (
    ConcurrencyOption,
    LeftOutOption,
    PassagesArgument,
    RowsOption,
    SeedOption,
    command,
    group_of_commands,
)

if TYPE_CHECKING:
    from crag.papers.self_rag.critique_cases import LabelledCase
    from crag.papers.self_rag.generator_data import Judging, Retrieve

group = group_of_commands("Make the data that Self-RAG is trained on.")
_NO_MODEL = "it asks a chat model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL"


@command(
    group,
    "crag reflect-data generator pairs.jsonl --critic models/critic --output records.jsonl",
    name="generator",
    extra="torch",
)
def generator_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: Annotated[
        list[Path], typer.Argument(help="Pairs (JSONL): instruction, output, perhaps input.")
    ],
    output: RowsOption,
    critic: Annotated[
        Path | None,
        typer.Option("--critic", help="Folder of crag train critic.", show_default=False),
    ] = None,
    truth: Annotated[
        list[Path] | None,
        typer.Option(
            "--truth",
            help="Instead: what the pairs were made from; repeatable.",
            show_default=False,
        ),
    ] = None,
    location: Annotated[
        str | None,
        typer.Option("--index", help="Where passages are found. Default: CRAG_INDEX, .crag/index."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="passages, keep_without_retrieval, irrelevant, unsupported, seed.",
        ),
    ] = None,
) -> None:
    """Insert passages and the critic's tokens into outputs (Alg. 2)."""
    from crag.papers.files import read_records, write_records
    from crag.papers.self_rag import generator_data as records
    from crag.papers.training import valid_recipe

    rules = valid_recipe(records.DataRules, assigned(settings))
    pairs = [pair for path in data for pair in read_records(path, records.Pair)]
    if (critic is None) == (not truth):
        allowed = "give a critic's folder, or --truth with the files the pairs were made from"
        raise SettingsError("--critic", critic, allowed)
    judge, retrieve = _judge(critic, truth or []), _retriever(location, rules.passages)
    made = records.generator_data(pairs, judge, retrieve, rules)
    if not made.records:
        told = ", ".join(f"{count} {reason}" for reason, count in made.rejected.items())
        message = f"no record could be made: {told}. Change the data, the index or the critic"
        raise CragError(message)
    write_records(output, made.records)
    shares = dict(records.label_shares(made.records))
    print_json({"records": len(made.records), "tokens": shares, "rejected": made.rejected})


def _judge(critic: Path | None, truth: list[Path]) -> "Judging":
    """Return the critic, or else what knows the truth of the files the pairs were made from."""
    from crag.papers.self_rag.critic import load_critic
    from crag.papers.self_rag.truths import TruthCritic, read_truths

    if critic is not None:
        return load_critic(critic)
    return TruthCritic([one for path in truth for one in read_truths(path)])


def _retriever(location: str | None, most: int) -> "Retrieve":
    """Return what finds passages in an index."""
    from crag.factory.embeddings import choose_encoder
    from crag.index import IndexRetriever, open_index
    from crag.parts import Passage

    found = environment(location)
    index = open_index(found.index, choose_encoder(found))
    retriever = IndexRetriever(index)

    def retrieve(query: str) -> list[Passage]:
        documents = retriever.invoke(query, k=most)
        return [Passage(str(d.metadata.get("title", "")), d.page_content) for d in documents]

    return retrieve


@command(
    group,
    "crag reflect-data critic squad.jsonl --output critic.jsonl",
    "crag reflect-data critic squad.jsonl --output critic.jsonl --chat",
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
    concurrency: ConcurrencyOption = 8,
) -> None:
    """Make labelled cases for a critic, by rule or with your chat model."""
    from crag.papers.files import write_records
    from crag.papers.self_rag.critique_cases import LABELS
    from crag.papers.self_rag.critique_rules import critique_cases, unleaked

    truths, leaks = unleaked(data, development or (), seed)
    cases = critique_cases(truths, each, seed, most=_limits(assigned(most)))
    if not cases:
        message = (
            "the rules could make no kind of case with every label from these data. Give files "
            "with passages that hold an answer, and others of the same article that do not"
        )
        raise CragError(message)
    told: dict[str, Any] = {}
    if chat:
        cases, told = _labelled(cases, concurrency)
    if cases:
        write_records(output, cases)
    counts = Counter((case.kind, case.label) for case in cases)
    labels = {
        kind: {label: counts[kind, label] for label in of_kind if counts[kind, label]}
        for kind, of_kind in LABELS.items()
    }
    print_json({"cases": len(cases), "labels": labels, "in_development": leaks} | told)


def _limits(most: Mapping[str, object]) -> Mapping[Any, int]:
    from pydantic import PositiveInt, TypeAdapter, ValidationError

    from crag.papers.self_rag.critique_cases import KINDS, Kind

    try:
        return TypeAdapter(dict[Kind, PositiveInt]).validate_python(most)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        allowed = f"one of {', '.join(KINDS)}, and a number from 1"
        raise SettingsError("--most", f"{name}={most.get(name)}", allowed) from error


def _labelled(
    cases: "list[LabelledCase]", concurrency: int
) -> "tuple[list[LabelledCase], dict[str, Any]]":
    """Let the chat model label the cases; return those it labelled, and what came of the rest."""
    from langchain_core.callbacks import get_usage_metadata_callback

    from crag.factory.parts import choose_model, choose_prompts
    from crag.papers.self_rag.critique_labels import label_cases

    place = environment()
    model, prompts = choose_model(place), choose_prompts(place)
    if model is None:
        raise SettingsError("--chat", "on", _NO_MODEL)
    name = str(getattr(model, "model_name", "") or type(model).__name__)
    with get_usage_metadata_callback() as used:
        labelled = label_cases(cases, model, name=name, prompts=prompts, concurrency=concurrency)
    told = {
        "rejected": labelled.rejected,
        "agreement_with_rules": labelled.agreement,
        "tokens": sum(one["total_tokens"] for one in used.usage_metadata.values()),
    }
    return labelled.cases, told


@command(
    group,
    "crag reflect-data pairs squad.jsonl --output pairs.jsonl",
    name="pairs",
)
def pairs_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: PassagesArgument,
    output: RowsOption,
    development: LeftOutOption = None,
    count: Annotated[int, typer.Option(min=1, help="Most pairs.")] = 5000,
    declined: Annotated[
        float,
        typer.Option(min=0, max=0.5, help="Share of answerable questions that are declined."),
    ] = 0.0,
    unsupported: Annotated[
        float,
        typer.Option(min=0, max=0.5, help="Share of outputs that state what no passage holds."),
    ] = 0.0,
    sentences: Annotated[int, typer.Option(min=1, help="Most sentences of an output.")] = 1,
    seed: SeedOption = 0,
) -> None:
    """Make pairs of instruction and output from questions whose truth is known."""
    from crag.papers.files import write_records
    from crag.papers.self_rag.critique_rules import unleaked
    from crag.papers.self_rag.generator_data import instruction_pairs

    truths, leaks = unleaked(data, development or (), seed)
    pairs = instruction_pairs(
        truths, count, declined=declined, unsupported=unsupported, sentences=sentences, seed=seed
    )  # fmt: skip
    if not pairs:
        raise CragError("no question is left: all of them are in the development data too")
    write_records(output, pairs)
    made = dict(Counter(one.dataset_name for one in pairs))
    print_json({"pairs": len(pairs), "kinds": made, "in_development": leaks})
