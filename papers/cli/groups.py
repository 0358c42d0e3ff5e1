"""The groups `crag train` and `crag reflect-data`, which have a default among their commands."""

import typer
from typer.core import TyperGroup


class _WithDefault(TyperGroup):
    """A group whose first command runs when none is named, as in `crag train DATA`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def _group(text: str) -> typer.Typer:
    return typer.Typer(
        cls=_WithDefault, help=text, no_args_is_help=True, add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip


train = _group("Train an evaluator, or the critic and generator of Self-RAG.")
reflect_data = _group("Make the data that Self-RAG is trained on.")
