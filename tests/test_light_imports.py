"""Model libraries load only when they are used, and one that is missing is named."""

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
    "onnxruntime", "chromadb", "langchain_openai", "openai", "tavily", "Stemmer",
}  # fmt: skip
BACK_ENDS = sorted(Path(crag.reflection.backends.__file__).parent.glob("[!_]*.py"))
ASKING = "import crag.cli.ask, crag.factory.parts"
INDEXING = "from crag.factory.embeddings import choose_encoder; from crag.index import index_paths"
STATEMENTS = [
    "sys.argv = ['crag', '--help']; from crag.papers.cli import main; main()",
    ASKING,
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


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """Which packages are loaded after each statement."""
    code = (
        "import contextlib, io, json, sys\n"
        "loaded = {}\n"
        f"for statement in {STATEMENTS!r}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "        exec(statement)\n"
        "    loaded[statement] = [*sys.modules]\n"
        "print(json.dumps(loaded))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_nothing_heavy_is_loaded(statement: str, loaded: dict[str, list[str]]) -> None:
    assert HEAVY & set(loaded[statement]) == set()


def test_help_does_not_even_load_langgraph(loaded: dict[str, list[str]]) -> None:
    assert not {"langgraph", "langchain_core"} & set(loaded[STATEMENTS[0]])


def test_asking_loads_no_document_loader(loaded: dict[str, list[str]]) -> None:
    assert "crag.index.store" in loaded[ASKING]
    assert not {"crag.documents.loaders", "crag.documents.chunks"} & set(loaded[ASKING])


LACKING = ["torch", "transformers", "sentence_transformers", "sklearn", "matplotlib", "bm25s"]
USES = {
    "torch": [
        "from crag.evaluators import T5Evaluator as Part; Part('folder')",
        "from crag.evaluators import CrossEncoderEvaluator as Part; Part('folder')",
        "from crag.reflection.backends.transformers import TransformersReflection as T; T('model')",
        "from crag.papers.metrics.citing import load_entailment; load_entailment('folder')",
    ],
    "train": [
        "from crag.papers.evaluator import trainer; trainer.load_trainee(trainer.Recipe())",
        "from crag.papers.evaluator.calibrate import calibrate; calibrate(None, [])",
        "from crag.papers.views import draw; draw('', ('', ''), {})",
        "from crag.papers.bench.corpus import CorpusSearcher; CorpusSearcher([])",
    ],
    "postgres": ["from crag.index import open_index; open_index('postgresql://h/n', None)"],
    "ray": ["from crag.runtime.ray_cluster import spread; list(spread([1], list, 'local'))"],
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What each use says in a process that lacks all extras."""
    program = (
        "import json, sys\n"
        f"for name in {[*LACKING, 'psycopg', 'ray']}: sys.modules[name] = None\n"
        "from crag.errors import MissingPackageError\n"
        "said = {}\n"
        f"for use in {[use for uses in USES.values() for use in uses]}:\n"
        "    try: exec(use)\n"
        "    except MissingPackageError as error: said[use] = str(error)\n"
        "print(json.dumps(said))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("extra", "use"), [(extra, use) for extra in USES for use in USES[extra]])
def test_a_missing_extra_is_named_with_its_command(
    extra: str, use: str, said: dict[str, str]
) -> None:
    command = f"pip install -c constraints.txt '.[{extra}]'"
    assert said[use].endswith(f"Run in a checkout of crag: {command}")
