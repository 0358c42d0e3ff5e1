"""Rows made from documentation."""

import json
from pathlib import Path

import pytest

from crag.errors import TrainingError
from crag.papers.reader.documentation import (
    HELD_OUT_PACKAGES,
    documentation_rows,
    fetched,
    listed,
    question_of,
)

RECIPES = Path(__file__).parents[3] / "papers" / "recipes"
GUIDE = """
# Guide

## Why does the lamp flicker?

The lamp flickers when the battery is nearly empty, because the circuit then cuts the current many
times in a second. Charge it for two hours. FILLER

## Installing the lamp on a wall

Screw the plate to the wall with the two screws, then hang the lamp on it and press until it clicks
twice. Use a wall plug in plaster. FILLER

## The lamp and its battery

A battery lasts for ten hours of light at full power and for thirty at the lowest step. The lamp
shows what is left of it by the colour of the button. FILLER
""".replace("FILLER", "Keep every part of the lamp dry and away from children. " * 9)


@pytest.mark.parametrize(
    ("heading", "question", "kind"),
    [
        ("Why does my import fail?", "Why does my import fail?", "asked"),
        ("3. How to read a file", "How to read a file?", "headed"),
        ("Running and testing the server", "running and testing the server", "task"),
        ("What's new in 2.0", None, None),
        ("The lamp and its battery", None, None),
    ],
)
def test_a_heading_asks_or_names_a_task(
    heading: str, question: str | None, kind: str | None
) -> None:
    assert question_of(heading) == ((question, kind) if question else None)


def test_a_section_answers_its_heading_and_others_do_not(tmp_path: Path) -> None:
    for name in ("lamp", "torch"):
        folder = tmp_path / name
        folder.mkdir()
        for part in range(4):
            (folder / f"guide{part}.md").write_text(GUIDE.replace("lamp", f"{name}{part}"))
    found = documentation_rows([tmp_path / "lamp", tmp_path / "torch"])
    answers = [row for row in found if row.answer == 1]
    assert {row.source for row in answers} == {"docs_asked", "docs_task"}
    assert any("flicker?" in row.question and "nearly empty" in row.text for row in answers)
    hidden = [row for row in answers if row.question not in row.text and "asked" in row.source]
    assert hidden
    assert all("flicker?" not in row.title for row in hidden)
    others = [row for row in found if row.source == "docs_other"]
    assert others
    assert all(row.answer == 0 and row.entity is None and row.evidence is None for row in others)
    elsewhere = [row for row in found if row.source == "docs_elsewhere"]
    assert all(("lamp" in row.question) != ("lamp" in row.text) for row in elsewhere)
    assert documentation_rows([tmp_path / "lamp", tmp_path / "torch"]) == found


@pytest.mark.parametrize("name", [*HELD_OUT_PACKAGES, "Prometheus-Client", "pytest_httpx"])
def test_no_package_that_measurements_ask_about_is_learned(name: str, tmp_path: Path) -> None:
    package = {"name": name, "file": "a.tar.gz", "sha256": "0", "licence": "MIT"}
    path = tmp_path / "packages.json"
    path.write_text(json.dumps([package]))
    with pytest.raises(TrainingError, match=f"{name} is kept out of training"):
        fetched(path, tmp_path)


def test_the_list_in_the_repository_names_each_package_once() -> None:
    packages = listed(RECIPES / "documentation_packages.json")
    assert len({package.name for package in packages}) == len(packages) == 417
    assert all(len(package.sha256) == 64 and package.licence for package in packages)
