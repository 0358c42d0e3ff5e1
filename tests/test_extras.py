"""What a light install lacks is named with the command that installs it."""

import json
import subprocess
import sys

import pytest

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
    "postgres": ["from crag.index.backends import open_backend; open_backend('postgresql://h/n')"],
    "ray": ["from crag.runtime.ray_cluster import spread; list(spread([1], list))"],
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
