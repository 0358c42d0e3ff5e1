"""No back end loads a model library, or the client of a server, before it is used."""

import subprocess
import sys
from pathlib import Path

import pytest

import crag.reflection.backends

MODULES = sorted(
    path.stem
    for path in Path(crag.reflection.backends.__file__).parent.glob("*.py")
    if path.stem != "__init__"
)
HEAVY = {"torch", "transformers", "openai", "langchain_openai", "onnxruntime"}


def test_all_back_ends_are_among_the_modules() -> None:
    assert {"transformers", "completions", "prompted", "embedded"} <= {*MODULES}


@pytest.mark.parametrize("modules", [[], MODULES])
def test_importing_loads_nothing_heavy(modules: list[str]) -> None:
    imports = "".join(f"import crag.reflection.backends.{name}\n" for name in modules)
    code = f"import sys, crag.reflection.backends\n{imports}print(*{HEAVY!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
