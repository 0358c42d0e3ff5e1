"""Model libraries load only when they are used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import crag.reflection.backends

HEAVY = {
    "torch", "transformers", "sentence_transformers", "sentencepiece", "sklearn", "scipy",
    "accelerate", "matplotlib", "PIL", "bm25s", "mauve", "rouge_score", "nltk", "ray",
    "langgraph_cli", "starlette", "langchain_community", "psycopg",
    "onnxruntime", "chromadb", "langchain_openai", "openai", "tavily", "snowballstemmer",
}  # fmt: skip
BACK_ENDS = sorted(Path(crag.reflection.backends.__file__).parent.glob("[!_]*.py"))
INDEXING = "from crag.factory.embeddings import choose_encoder; from crag.index import index_paths"
STATEMENTS = [
    "sys.argv = ['crag', '--help']; from crag.papers.cli import main; main()",
    INDEXING,
    "import crag",
    "import crag.testing",
    "import crag.torch_models",
    *(f"import crag.reflection.backends.{path.stem}" for path in BACK_ENDS),
    "import crag.evaluators, crag.evaluators.t5",
    "import crag.graph",
    "import crag.index",
    "import crag.factory",
    "import crag.langchain",
    "import crag.graph.studio",
    "import crag.papers.metrics, crag.papers.loading",
]
"""Run one after the other in one interpreter; the help comes first, as it loads least."""
ASKING = "import crag.cli.ask, crag.factory.parts"


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """Which packages are loaded after each statement."""
    code = (
        "import contextlib, io, json, sys\n"
        "loaded = {}\n"
        f"for statement in {STATEMENTS!r}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "        exec(statement)\n"
        "    loaded[statement] = [name for name in sys.modules if '.' not in name]\n"
        "print(json.dumps(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_nothing_heavy_is_loaded(statement: str, loaded: dict[str, list[str]]) -> None:
    assert HEAVY & set(loaded[statement]) == set()


def test_help_does_not_even_load_langgraph(loaded: dict[str, list[str]]) -> None:
    assert not {"langgraph", "langchain_core"} & set(loaded[STATEMENTS[0]])


def test_asking_loads_no_document_loader() -> None:
    code = f"{ASKING}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    assert "crag.index.store" in names
    assert not {"crag.documents.loaders", "crag.documents.chunks"} & set(names)
