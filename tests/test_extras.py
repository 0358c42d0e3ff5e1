"""What a light install lacks is named with the command that installs it."""

import json
import subprocess
import sys

import pytest

from crag.errors import MissingPackageError
from crag.extras import require

TORCH = ["torch", "transformers", "sentence_transformers", "sentencepiece"]
TRAIN = [*TORCH, "sklearn", "accelerate", "peft", "matplotlib"]
USES = {
    "torch": [
        "from crag.evaluators import T5Evaluator; T5Evaluator('folder')",
        "from crag.evaluators import CrossEncoderEvaluator; CrossEncoderEvaluator('folder')",
        "from crag.factory.embeddings import TorchEncoder; TorchEncoder('intfloat/e5-small')",
        (
            "from crag.reflection.backends.transformers import TransformersReflection; "
            "TransformersReflection('folder')"
        ),
        ("from crag.papers.metrics.entailment import load_entailment;load_entailment('folder')"),
    ],
    "train": [
        (
            "from crag.papers.evaluator.models import load_trainee; "
            "from crag.papers.evaluator.recipe import Recipe; load_trainee(Recipe())"
        ),
        (
            "from crag.papers.evaluator.calibrate import calibrate; "
            "from crag.testing import FakeEvaluator; calibrate(FakeEvaluator(0.5), [])"
        ),
        "from crag.papers.bench.charts import require_matplotlib; require_matplotlib('train')",
        "from crag.papers.bench.corpus import CorpusSearcher; CorpusSearcher([]).load()",
    ],
    "postgres": [
        "from crag.index.backends import open_backend; open_backend('postgresql://host/name')",
    ],
    "ray": [
        "from crag.runtime.ray_cluster import spread; list(spread([1]))",
    ],
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What each use says in a process that lacks all extras."""
    program = (
        "import json, pathlib, sys\n"
        f"for name in {[*TRAIN, 'bm25s', 'psycopg', 'ray']}: sys.modules[name] = None\n"
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


def test_what_is_installed_passes() -> None:
    require("torch", "testing", "json", "xml.dom")


@pytest.mark.parametrize("module", ["no_such_module", "no_such_module.part"])
def test_what_is_not_there_does_not(module: str) -> None:
    with pytest.raises(MissingPackageError, match="testing needs the package 'corrective-rag"):
        require("train", "testing", "json", module)
