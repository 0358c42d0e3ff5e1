"""The commands of the papers beside those of the product: train, calibrate and bench."""

from crag.cli.app import app, main

from crag.papers.cli import (  # isort: skip - in the order of the help
    calibrate,
    bench,
    train,
    reflect_data,
)

__all__ = ["app", "bench", "calibrate", "main", "reflect_data", "train"]

app.add_typer(train.group, name="train")
app.add_typer(reflect_data.group, name="reflect-data")
