"""The notebooks run offline, show what is committed, and hold nothing of the machine."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tests.notebooks.comparing import differences, shown
from tests.notebooks.executing import FOLDER, NOTEBOOKS, ROOT, read

OWN_PARTS = {"bring_your_own"}
"""The notebooks whose subject is code of the reader's own."""
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


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


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
def test_committed_outputs_are_those_of_one_whole_run(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.output_type for output in outputs(notebook)}
    assert kinds <= {"execute_result", "stream", "display_data"}
    warnings = [output.text for output in outputs(notebook) if output.get("name") == "stderr"]
    assert warnings == []


@BY_NAME
def test_nothing_of_the_machine_is_committed(path: Path) -> None:
    notebook = read(path)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}
    assert [cell.metadata for cell in notebook.cells if cell.metadata] == []
    found = [(place, MACHINE.findall(text)) for place, text in shown(notebook)]
    assert [(place, matches) for place, matches in found if matches] == []


@BY_NAME
def test_cells_have_names_and_pictures_have_words(path: Path) -> None:
    notebook = read(path)
    stem = path.stem.replace("_", "-")
    numbers = [cell.id.removeprefix(f"{stem}-") for cell in notebook.cells]
    assert numbers == [f"{number:02d}" for number in range(1, len(numbers) + 1)]
    pictures = [one for one in outputs(notebook) if "image/png" in one.get("data", {})]
    assert [one for one in pictures if not one.metadata["image/png"]["alt"]] == []


@BY_NAME
def test_notebooks_import_the_logic(path: Path) -> None:
    trees = [
        compile(cell.source, path, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for cell in code(read(path))
    ]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = [node for tree in trees for node in ast.walk(tree) if isinstance(node, definitions)]
    assert bool(defined) is (path.stem in OWN_PARTS)


@BY_NAME
def test_links_lead_somewhere(path: Path) -> None:
    prose = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)#]+)\)", prose)
    assert links
    assert [link for link in links if not (FOLDER / link).exists()] == []


@pytest.mark.nightly
@pytest.mark.slow
def test_a_notebook_gets_no_keys_and_cannot_leave_the_machine(executed: Path) -> None:
    key, refused = shown(read(executed / "written.ipynb"))
    assert key == ("cell-0: text/plain", "'no key'")
    assert refused[1] == "this run is offline, but '192.0.2.1' was asked for\n"
