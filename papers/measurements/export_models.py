"""Write the two models of the wheel again, from the 16-bit weights that lay here before them.

    git archive bc1f2cc src/crag/models src/crag/evaluators | tar -x -C build
    python papers/measurements/export_models.py build/src/crag src/crag/models

There they are all-MiniLM-L6-v2 in 16 bits, and encoder and reader as their differences from it, in
8 bits with a scale for each row. `crag.papers.training.onnx_export` says what is written; cards and
the weights of the reader's grade are taken over, thresholds included, so fit them again.
"""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from crag.models.encoder import PACKAGED as ENCODER
from crag.models.model import MODEL, TOKENIZER
from crag.models.reading_model import GRADE
from crag.models.reading_model import PACKAGED as READER
from crag.papers.training.onnx_export import Weights, hashes_of, write_encoder, write_reader

HEADS = 12
TOKENIZERS = (TOKENIZER, "tokenizer_config.json")
LICENCE = "LICENCE.txt"
FOLDERS = {"encoder": ENCODER, "reader": READER}


def main() -> None:
    """Read, restore, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, help="the folder src/crag of bc1f2cc")
    parser.add_argument("output", type=Path, help="the folder of the packaged models")
    given = parser.parse_args()
    base = given.before / "models" / "all_minilm_l6_v2"
    official = load_file(base / "model.safetensors")
    for kind, source in (
        ("encoder", given.before / "models" / "crag_minilm_l6_v1"),
        ("reader", given.before / "evaluators" / "reader"),
    ):
        folder = given.output / FOLDERS[kind]
        folder.mkdir(parents=True, exist_ok=True)
        weights = restored(official, load_file(source / "delta.safetensors"))
        (write_encoder if kind == "encoder" else write_reader)(weights, HEADS, folder)
        for name in (*TOKENIZERS, LICENCE):
            shutil.copyfile(base / name, folder / name)
        grade = [GRADE] if kind == "reader" else []
        for name in grade:
            shutil.copyfile(source / name, folder / name)
        card = json.loads((source / "card.json").read_bytes())
        for name in ("base_sha256", "name"):
            card.pop(name, None)
        card["recipe"] = {"start": card["base"]} | card["recipe"]
        del card["recipe"]["stored_steps"]
        card["files"] = hashes_of(folder, *grade)
        (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", "utf-8")
        print(f"{folder / MODEL}: {(folder / MODEL).stat().st_size:,} bytes")


def restored(base: Weights, change: Weights) -> Weights:
    """Return the weights that the change makes of its base."""
    weights = {name: values.astype(np.float32) for name, values in base.items()}
    for key, values in change.items():
        name, _, form = key.rpartition(".")
        if form == "whole":
            weights[name] = values.astype(np.float32)
        elif form == "change":
            weights[name] += values.astype(np.float32) * change[f"{name}.scale"]
    return weights


if __name__ == "__main__":
    main()
