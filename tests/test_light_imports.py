"""Model libraries load only when they are used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = [
    "torch", "transformers", "sentence_transformers", "sklearn", "chromadb",
    "langchain_openai", "openai", "tavily", "snowballstemmer", "psycopg",
]  # fmt: skip
EXTRAS = [
    "torch", "transformers", "sentence_transformers", "sentencepiece", "sklearn", "scipy",
    "accelerate", "peft", "matplotlib", "PIL", "bm25s", "mauve", "rouge_score", "nltk", "ray",
    "langgraph_cli", "starlette", "langchain_community", "psycopg",
]  # fmt: skip
"""What is imported of the packages that only an extra installs."""


def loaded_by(statement: str) -> list[str]:
    code = (
        "import contextlib, io, json, sys\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    {statement}\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "statement",
    [
        "import crag",
        "import crag.graph",
        "import crag.retrieval",
        "import crag.evaluators",
        "import crag.testing",
        "import crag.factory",
        "import crag.langchain",
        "import crag.graph.studio",
        "sys.argv = ['crag', '--help']; from crag.cli import main; main()",
    ],
)
def test_nothing_heavy_is_loaded(statement: str) -> None:
    assert loaded_by(statement) == []


def test_help_does_not_even_load_langgraph() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['crag', '--help']\n"
        "from crag.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'langgraph' not in sys.modules and 'langchain_core' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout


def test_a_question_is_answered_without_any_extra(tmp_path: Path) -> None:
    (tmp_path / "kettle.md").write_text("A kettle boils water in three minutes.")
    code = (
        "import sys\n"
        f"for name in {EXTRAS!r}: sys.modules[name] = None\n"
        "from crag.cli.app import app\n"
        "asked = 'How long does a kettle take to boil water?'\n"
        "for arguments in (['index', 'kettle.md'], ['ask', asked, '--json']):\n"
        "    try: app(arguments)\n"
        "    except SystemExit: pass\n"
        "assert 'onnxruntime' in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert '"answer": "“A kettle boils water in three minutes.”' in done.stdout
