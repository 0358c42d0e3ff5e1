"""The notebooks run offline, show what is committed, and hold nothing of the machine."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tests.notebooks.executing import FOLDER, NOTEBOOKS, ROOT, read

TEXTS = ("text/plain", "text/markdown")
"""What is compared. Not compared are pictures (`image/png`), whose bytes depend on the machine's
fonts and on rounding: the text beside each of them says what it shows, and is compared."""
TOLERANCE = 0.011
"""Scores may differ in the last digit between processors."""
_NUMBER = re.compile(r"[+\-−]?\d+\.\d+")
Shown = tuple[str, str]
"""A cell and a kind of output, and the text."""


def shown(notebook: NotebookNode) -> list[Shown]:
    """Return all texts of a notebook's outputs, in order."""
    return [
        (f"{cell.id}: {kind}", text)
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind, text in _texts(output)
    ]


def differences(committed: NotebookNode, now: NotebookNode) -> list[str]:
    """Say what two runs show differently; nothing if they agree."""
    pairs = zip_longest(shown(committed), shown(now), fillvalue=("nothing", ""))
    return [
        f"{before[0]}\n--- committed\n{before[1]}\n+++ now ({after[0]})\n{after[1]}"
        for before, after in pairs
        if before[0] != after[0] or not alike(before[1], after[1])
    ]


def alike(first: str, second: str) -> bool:
    """Compare texts: words and whole numbers exactly, decimals up to their last digit.

    Bold type does not count: it marks the best of scores that may be all but equal.
    """
    first, second = (text.replace("**", "") for text in (first, second))
    if _NUMBER.sub("#", first) != _NUMBER.sub("#", second):
        return False
    pairs = zip(_numbers(first), _numbers(second), strict=True)
    return all(abs(one - other) <= TOLERANCE for one, other in pairs)


def _texts(output: NotebookNode) -> Iterator[Shown]:
    if output.output_type == "stream":
        yield output.name, output.text
        return
    for kind in TEXTS:
        if kind in output.get("data", {}):
            yield kind, output.data[kind]


def _numbers(text: str) -> list[float]:
    return [float(number.replace("−", "-")) for number in _NUMBER.findall(text)]


MACHINE = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|opt|work|Users|var)/|0x[0-9a-f]{6,}")
"""Paths and addresses of objects."""
BY_NAME = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


ASKED = "import os\nos.environ.get('OPENAI_API_KEY', 'no key')"
CALLED = """
import socket
try:
    socket.create_connection(('192.0.2.1', 80), timeout=1)
except OSError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all notebooks and of one that tries to get out, as `make notebooks` runs them.

    They run where the environment has a key.
    """
    folder = tmp_path_factory.mktemp("executed")
    paths = [*NOTEBOOKS, written(tmp_path_factory.mktemp("written"), ASKED, CALLED)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.notebooks.executing", *paths, "--output", folder],
        cwd=ROOT, env=os.environ | {"OPENAI_API_KEY": "secret"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def written(folder: Path, *sources: str) -> Path:
    """Write a notebook of these cells."""
    made = nbformat.v4.new_code_cell
    cells = [made(source, id=f"cell-{number}") for number, source in enumerate(sources)]  # type: ignore[no-untyped-call]
    path = folder / "written.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)  # type: ignore[no-untyped-call]
    return path


def test_there_are_six_and_the_readme_tells_of_each() -> None:
    told = (FOLDER / "README.md").read_text("utf-8")
    assert len(NOTEBOOKS) == 6
    assert [path.name for path in NOTEBOOKS if f"({path.name})" not in told] == []


@pytest.mark.nightly
@pytest.mark.slow
@BY_NAME
def test_a_notebook_shows_what_is_committed(path: Path, executed: Path) -> None:
    now = read(executed / path.name)
    assert len(shown(now)) >= 5
    assert differences(read(path), now) == [], "run `make notebooks` and look at what changed"


@BY_NAME
def test_nothing_of_the_machine_is_committed(path: Path) -> None:
    notebook = read(path)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}
    assert [cell.metadata for cell in notebook.cells if cell.metadata] == []
    found = [(place, MACHINE.findall(text)) for place, text in shown(notebook)]
    assert [(place, matches) for place, matches in found if matches] == []


@pytest.mark.nightly
@pytest.mark.slow
def test_a_notebook_gets_no_keys_and_cannot_leave_the_machine(executed: Path) -> None:
    key, refused = shown(read(executed / "written.ipynb"))
    assert key == ("cell-0: text/plain", "'no key'")
    assert refused[1] == "this run is offline, but '192.0.2.1' was asked for\n"
