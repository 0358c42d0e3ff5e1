"""The folders, the installed package and the wheel hold the same files."""

import json
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.light import EPOCH, ROOT, built, installed

FOLDERS = {
    "": "src/crag", "graph": "graph", "nodes": "nodes", "papers": "papers", "prompts": "prompts",
}  # fmt: skip
MEASURED = {"recipes", "results", "tables", "README.md"}
"""Of `papers`, what is in the repository alone."""
SHIPPED = {
    ".py",
    ".md",
    ".json",
    ".typed",
    ".safetensors",
    ".onnx",
    ".html",
    ".css",
    ".js",
    ".svg",
    ".sql",
    ".txt",
}


def files_of_folders() -> set[str]:
    return {
        str(Path("crag", package, path.relative_to(ROOT / folder)))
        for package, folder in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and (path.suffix in SHIPPED or path.name == "py.typed")
        if not (package == "papers" and path.relative_to(ROOT / folder).parts[0] in MEASURED)
    }


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel and the source distribution."""
    return built(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def wheel(distributions: list[Path]) -> Path:
    return next(path for path in distributions if path.suffix == ".whl")


def test_the_installed_package_has_the_files_of_the_folders() -> None:
    spec = find_spec("crag")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent
    found = {
        str(Path("crag", path.relative_to(installed)))
        for path in installed.rglob("*")
        if path.is_file() and (path.suffix in SHIPPED or path.name == "py.typed")
    }
    missing = files_of_folders() - found
    assert not missing, f"installed package lacks {sorted(missing)}: run `make test` to reinstall"


@pytest.mark.slow
def test_the_wheel_has_them_too_and_nothing_at_the_top_level(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == files_of_folders()


@pytest.mark.slow
def test_the_same_source_gives_the_same_bytes(distributions: list[Path]) -> None:
    for path in distributions:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                times = {one.date_time for one in archive.infolist()}
                names = [one.filename for one in archive.infolist()]
            assert times == {(2023, 11, 14, 22, 13, 20)}
        else:
            with tarfile.open(path) as archive:
                members = archive.getmembers()
            names = [one.name for one in members]
            assert {(one.mtime, one.uid, one.uname) for one in members} == {(EPOCH, 0, "")}
            assert names == sorted(names)
        assert len(names) == len(set(names))


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel and no extra, as `make ask` builds it."""
    environment = tmp_path_factory.mktemp("light") / "venv"
    return installed(wheel, environment)


@pytest.mark.slow
def test_the_light_environment_has_what_it_needs_and_no_model_library(light: Path) -> None:
    code = "import importlib.metadata as m; print(*(one.name.lower() for one in m.distributions()))"
    done = subprocess.run(
        [light / "python", "-c", code], capture_output=True, text=True, check=True
    )
    names = set(done.stdout.split())
    assert {"corrective-rag", "onnxruntime"} <= names
    assert not names & {"torch", "transformers", "sentence-transformers", "scikit-learn"}
    checked = subprocess.run(
        [sys.executable, "-m", "pip", "--python", light / "python", "check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked


@pytest.mark.slow
def test_the_light_environment_answers_without_a_network(light: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "kettle.md").write_text("A kettle boils water in three minutes.")
    (notes / "oven.md").write_text("An oven heats up in ten minutes.")
    closed = "http://127.0.0.1:9"  # Nothing listens there.

    def crag(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [light / "crag", *arguments],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "HTTP_PROXY": closed, "HTTPS_PROXY": closed},
            capture_output=True,
            text=True,
            check=False,
        )

    assert crag("index", "notes").returncode == 0
    done = crag("ask", "How long does a kettle take to boil water?", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)["answer"]
    assert answer.startswith("“A kettle boils water in three minutes.”")


@pytest.mark.slow
def test_a_host_project_with_its_own_graph_and_nodes_embeds_the_wheel(
    light: Path, tmp_path: Path
) -> None:
    """The host's own `graph.py` and `nodes/`, its own retriever and model."""
    host = tmp_path / "host"
    (host / "nodes").mkdir(parents=True)
    (host / "nodes" / "__init__.py").write_text("NAME = 'the host nodes'\n")
    (host / "graph.py").write_text("NAME = 'the host graph'\n")
    (host / "main.py").write_text(HOST)
    command = [light / "python", "main.py"]
    done = subprocess.run(command, cwd=host, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "the host graph",
        "the host nodes",
        "correct",
        "Ada Lovelace did [1].",
    ]


HOST = """
import graph
import nodes
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.graph import build_crag
from crag.parts import Parts
from crag.testing import FakeChatModel, FakeEvaluator


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Ada Lovelace wrote the first program.")]


parts = Parts(
    retriever=Shelf(),
    evaluator=FakeEvaluator(0.9),
    model=FakeChatModel(replies=["Ada Lovelace did [1]."]),
)
state = build_crag(parts).invoke({"question": "Who wrote the first program?"})
print(graph.NAME, nodes.NAME, state["action"], state["answer"], sep="\\n")
"""
