"""Several processes share the batches of a step."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crag.papers.self_rag.language_model import language_recipe
from tests.reflective import tiny_base, written

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "papers" / "recipes" / "self_rag_7b.toml"
BLOCK = "[Retrieval]<paragraph>Kettle\nIt was built</paragraph>[Relevant]"
RECORDS = [
    (f"When was it? {n}", f"{BLOCK} It was built in 17{n}.[Fully supported][Utility:5]")
    for n in range(24)
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_base(tmp_path_factory.mktemp("base"), tied=False)


def test_the_file_for_several_gpus_is_one_that_accelerate_reads() -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    read = load_config_from_file(str(RECIPE.with_name("self_rag_fsdp.yaml")))
    assert (read.distributed_type, read.mixed_precision) == ("FSDP", "bf16")
    recipe = language_recipe("generator", RECIPE, {})
    assert recipe.accumulation % read.num_processes == 0
    assert recipe.accumulation * recipe.batch_size == 128


@pytest.mark.nightly
def test_two_processes_train_what_one_does(base: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    rows = [{"instruction": asked, "output": said} for asked, said in RECORDS]
    data = written(tmp_path / "records.jsonl", rows)
    settings = {"base": base, "accumulation": 4, "batch_size": 1, "max_length": 300, "steps": 4,
                "learning_rate": 1e-3}  # fmt: skip
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    made = []
    for processes in (1, 2):
        output = tmp_path / f"of{processes}"
        launched = [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python",
            "--nproc-per-node", str(processes), Path(sys.executable).parent / "crag",
            "train", "generator", data, "--output", output, *options,
        ]  # fmt: skip
        done = subprocess.run(
            [str(word) for word in launched], capture_output=True, text=True, check=False,
            timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.count("Written to") == 1
        made.append(load_file(output / "model.safetensors"))
    one, two = made
    assert one.keys() == two.keys()
    assert all(torch.allclose(one[name], two[name], atol=2e-5) for name in one)
