"""`crag train critic`: fine-tune a critic of Self-RAG, and measure it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crag.cli.options import JsonOption
from crag.cli.terminal import assigned
from crag.errors import TrainingError
from crag.papers.cli.command import command
from crag.papers.cli.groups import train
from crag.papers.cli.options import (
    CasesArgument,
    CurvesOption,
    LicenceOption,
    ModelFolder,
    RecipeOption,
    RecipeSettings,
    held_out_option,
)

if TYPE_CHECKING:
    from crag.papers.self_rag.critique_cases import LabelledCase

_LIMITS = [
    "It judges by the case alone; what it calls supported need not be true.",
    "Labels made by rule are about questions with short answers; others may be judged worse.",
]
_NEXT = "Next, make a generator's data:\n  crag reflect-data DATA --critic {} --output FILE"


@command(
    train,
    "crag train critic critic.jsonl --output models/critic",
    extra="train",
)
def critic(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: CasesArgument,
    output: ModelFolder,
    development: Annotated[
        list[Path] | None, typer.Option("--dev", help="Held-out cases; may be repeated.")
    ] = None,
    share: Annotated[float, held_out_option("articles")] = 0.1,
    recipe: RecipeOption = None,
    settings: RecipeSettings = None,
    licence: LicenceOption = None,
    pictures: CurvesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a critic of Self-RAG on labelled cases; run it again to resume."""
    from crag.papers.cli.language_training import LanguageTraining
    from crag.papers.loading.records import read_records
    from crag.papers.self_rag.critic import agreement, critic_texts, load_critic
    from crag.papers.self_rag.critique_cases import Kind, LabelledCase
    from crag.papers.self_rag.language_recipe import language_recipe
    from crag.papers.self_rag.released_critic import NO_WORDING, released_wording

    chosen = language_recipe("critic", recipe, assigned(settings))
    training = LanguageTraining("critic", chosen, output, pictures, quiet=as_json)
    cases = training.read(data, LabelledCase, licence)
    kept_out = [case for path in development or () for case in read_records(path, LabelledCase)]
    if not kept_out:
        cases, kept_out = held_out(cases, share, chosen.seed)
    groups = {case.group for case in kept_out} - {""}
    keys = {case.key for case in kept_out}
    kept = [case for case in cases if case.group not in groups and case.key not in keys]
    if not kept:
        message = "nothing is left to train on: every case is in the development data too"
        raise TrainingError(message)
    wordless: set[Kind] = {case.kind for case in (*kept, *kept_out) if not case.wording}
    released = chosen.form == "released"
    wording = released_wording(chosen.wording, wordless) if released else NO_WORDING
    base = training.base()
    texts, too_long = critic_texts(base.tokenizer, kept, chosen.max_length, chosen.form, wording)
    left_out = {"in the development data": len(cases) - len(kept), "too long": too_long}
    card = training.train(base, texts, left_out, _LIMITS)
    if kept_out:
        found = agreement(kept_out, load_critic(output, wording=wording).labels(kept_out))
        metrics = {
            kind: {"cases": one.cases, "accuracy": round(one.accuracy, 4)}
            for kind, one in found.items()
        }
        confusion = {kind: one.confusion for kind, one in found.items()}
        changes = {"metrics": card.metrics | metrics, "confusion": confusion}
        card = card.model_copy(update=changes)
    training.finish(card, _NEXT)


def held_out(
    cases: Sequence["LabelledCase"], share: float, seed: int
) -> tuple[list["LabelledCase"], list["LabelledCase"]]:
    """Split off a share of the groups, so that no article is on both sides."""
    import random

    groups = sorted({case.group for case in cases})
    random.Random(seed).shuffle(groups)  # noqa: S311 - a split, no secret
    chosen = set(groups[: round(len(groups) * share)])
    rest = [case for case in cases if case.group not in chosen]
    return rest, [case for case in cases if case.group in chosen]
