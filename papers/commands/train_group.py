"""The commands `crag train` and `crag reflect-data`, which have a default among their own."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from crag.cli.commands import Group, command

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
LabelsOption = Annotated[
    Literal["auto", "title", "answer", "graded"],
    typer.Option(help="What makes a document of a QA set relevant."),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A number of the recipe, such as epochs=3."),
]
LicenceOption = Annotated[
    str | None, typer.Option(help="Licence of the data, for the card.", show_default=False)
]
_HELP = {"-h", "--help"}


class _WithDefault(Group):
    """A group whose first command runs when none is named, as in `crag train DATA`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in {*self.commands, *_HELP}:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def _group(text: str) -> typer.Typer:
    return typer.Typer(
        cls=_WithDefault, help=text, no_args_is_help=True, add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip


train = _group("Train an evaluator, or the critic and generator of Self-RAG.")
reflect_data = _group("Make the data that Self-RAG is trained on.")


@command(
    train,
    "crag train pairs.jsonl --output mine",
    "crag train pairs.jsonl --output mine --dev held-out.jsonl --set epochs=3",
    extra="train",
)
def evaluator(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: Annotated[
        list[Path],
        typer.Argument(help="Labelled pairs (jsonl, csv) or QA sets with documents (jsonl)."),
    ],
    output: Annotated[
        Path, typer.Option(help="Folder to write the evaluator to.", show_default=False)
    ],
    development: Annotated[
        list[Path] | None, typer.Option("--dev", help="Development data; may be repeated.")
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            "--held-out", min=0, max=0.5, help="Without --dev, hold out this share of questions."
        ),
    ] = 0.1,
    preset: Annotated[
        Literal["default", "paper"],
        typer.Option(help="default: as the shipped one; paper: T5-large, as CRAG."),
    ] = "default",
    settings: SettingsOption = None,
    labels: LabelsOption = "auto",
    licence: LicenceOption = None,
    leaks: Annotated[
        Literal["refuse", "drop", "allow"],
        typer.Option(help="Questions and titles in both training and development data."),
    ] = "refuse",
    pictures: Annotated[
        Path | None, typer.Option(help="Folder for curves.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train an evaluator on your labelled data; run it again to resume."""
    from crag.cli.terminal import assigned
    from crag.papers.commands.train import TrainOptions, run
    from crag.papers.training.recipe import recipe_from

    options = TrainOptions(
        data=data,
        development=development or [],
        output=output,
        recipe=recipe_from(preset, assigned(settings or [])),
        labels=labels,
        held_out=share,
        licence=licence,
        leaks=leaks,
        pictures=pictures,
    )
    run(options, as_json=as_json)


LeftOutOption = Annotated[
    list[Path] | None,
    typer.Option("--dev", help="Leave out questions and articles of these files."),
]
RowsOption = Annotated[Path, typer.Option(help="File to write (JSONL).", show_default=False)]
DataOption = Annotated[
    list[Path],
    typer.Argument(help="Questions with their passages (JSONL): paragraphs, or documents."),
]
MaxCalls = Annotated[
    int | None, typer.Option(min=0, help="Most calls of the chat model.", show_default=False)
]
MaxTokens = Annotated[
    int | None, typer.Option(min=0, help="Most tokens, in and out.", show_default=False)
]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Needs --prices.", show_default=False)]
Prices = Annotated[
    str | None, typer.Option(metavar="IN,OUT", help="For a million tokens.", show_default=False)
]


@command(
    reflect_data,
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
            help="passages, keep_without_retrieval, irrelevant, unsupported, weights or seed.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Device of the critic. Default: CUDA if there is one.")
    ] = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Critique in Ray workers; RAY_ADDRESS names a cluster.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, help="With --ray: workers, each with a critic of its own.")
    ] = 2,
    as_json: JsonOption = False,
) -> None:
    """Insert passages and the critic's tokens into outputs (Alg. 2); run it again to resume."""
    from crag.cli.terminal import assigned
    from crag.papers.commands.train_data import GeneratorDataOptions, make_generator_data

    options = GeneratorDataOptions(
        data=data, output=output, critic=critic, truth=truth or [], location=location,
        device=device, changes=assigned(settings or []), ray=ray, concurrency=concurrency,
    )  # fmt: skip
    make_generator_data(options, as_json=as_json)


@command(
    reflect_data,
    "crag reflect-data critic squad.jsonl --output critic.jsonl",
    "crag reflect-data critic squad.jsonl --output critic.jsonl --chat --max-calls 500",
    name="critic",
)
def critic_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: DataOption,
    output: RowsOption,
    development: LeftOutOption = None,
    each: Annotated[int, typer.Option(min=1, help="Most cases of each label.")] = 1000,
    most: Annotated[
        list[str] | None,
        typer.Option("--most", metavar="KIND=NUMBER", help="The same for one kind; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of every draw.")] = 0,
    chat: Annotated[
        bool, typer.Option("--chat", help="Let the chat model label the cases, not the rules.")
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls at the same time.")] = 8,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    prices: Prices = None,
    as_json: JsonOption = False,
) -> None:
    """Make labelled cases for a critic, by rule or with your chat model; run again to resume."""
    from crag.asking.budget import Budget, prices_from_text
    from crag.cli.terminal import assigned
    from crag.papers.commands.train_data import CriticDataOptions, make_critic_data

    options = CriticDataOptions(
        data=data, development=development or [], output=output, each=each,
        most=assigned(most or []), seed=seed, chat=chat, concurrency=concurrency,
        budget=Budget(
            calls=max_calls, tokens=max_tokens, cost=max_cost, prices=prices_from_text(prices)
        ),
    )  # fmt: skip
    make_critic_data(options, as_json=as_json)


CasesOption = Annotated[list[Path], typer.Argument(help="Files of crag reflect-data (JSONL).")]
OutputFolder = Annotated[
    Path, typer.Option("--output", help="Folder to write the model to.", show_default=False)
]
RecipeOption = Annotated[
    Path | None,
    typer.Option("--recipe", help="TOML file with a table of this name.", show_default=False),
]
PicturesOption = Annotated[
    Path | None, typer.Option("--pictures", help="Folder for curves.", show_default=False)
]


@command(
    train,
    "crag train critic critic.jsonl --output models/critic",
    extra="train",
)
def critic(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: CasesOption,
    output: OutputFolder,
    development: Annotated[
        list[Path] | None, typer.Option("--dev", help="Held-out cases; may be repeated.")
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            "--held-out", min=0, max=0.5, help="Without --dev, hold out this share of articles."
        ),
    ] = 0.1,
    recipe: RecipeOption = None,
    settings: SettingsOption = None,
    licence: LicenceOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a critic of Self-RAG on labelled cases; run it again to resume."""
    from crag.cli.terminal import assigned
    from crag.papers.commands.train_language import LanguageTrainOptions, train_critic
    from crag.papers.training.self_rag.language_recipe import language_recipe

    options = LanguageTrainOptions(
        data=data, development=development or [], output=output, held_out=share, licence=licence,
        pictures=pictures, recipe=language_recipe("critic", recipe, assigned(settings or [])),
    )  # fmt: skip
    train_critic(options, as_json=as_json)


@command(
    train,
    "crag train generator records.jsonl --output models/self-rag",
    extra="train",
)
def generator(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: CasesOption,
    output: OutputFolder,
    recipe: RecipeOption = None,
    settings: SettingsOption = None,
    licence: LicenceOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a generator of Self-RAG on critiqued records; run it again to resume."""
    from crag.cli.terminal import assigned
    from crag.papers.commands.train_language import LanguageTrainOptions, train_generator
    from crag.papers.training.self_rag.language_recipe import language_recipe

    options = LanguageTrainOptions(
        data=data, development=[], output=output, held_out=0.0, licence=licence,
        pictures=pictures, recipe=language_recipe("generator", recipe, assigned(settings or [])),
    )  # fmt: skip
    train_generator(options, as_json=as_json)


@command(
    reflect_data,
    "crag reflect-data pairs squad.jsonl --output pairs.jsonl",
    name="pairs",
)
def pairs_data(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: DataOption,
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
    seed: Annotated[int, typer.Option(help="Seed of every draw.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make pairs of instruction and output from questions whose truth is known."""
    from crag.papers.commands.train_data import make_pairs

    make_pairs(
        data, development or [], output, count, seed,
        declined=declined, unsupported=unsupported, as_json=as_json,
    )  # fmt: skip
