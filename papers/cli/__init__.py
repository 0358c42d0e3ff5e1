"""The commands of the papers beside those of the product: train, calibrate and bench."""

from crag.cli import app, main

from crag.papers.cli import (  # isort: skip - in the order of the help
    calibrate,
    bench,
    train_evaluator,
    train_critic,
    train_generator,
    train_reader,
    train_questions,
    train_encoder,
    reflect_generator,
    reflect_critic,
    reflect_pairs,
)
from crag.papers.cli.groups import reflect_data, train

__all__ = [
    "app", "bench", "calibrate", "main", "reflect_critic", "reflect_generator",
    "reflect_pairs", "train_critic", "train_encoder", "train_evaluator", "train_generator",
    "train_questions", "train_reader",
]  # fmt: skip

app.add_typer(train, name="train")
app.add_typer(reflect_data, name="reflect-data")
