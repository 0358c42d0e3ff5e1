"""A folder with the paper's evaluator: checked, then loaded whole or not at all."""

import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.errors import EvaluatorError
from crag.extras import require
from crag.plain import first_line
from crag.torch_models import quietly

if TYPE_CHECKING:
    import torch

ARCHITECTURE = "T5ForSequenceClassification"
_CLASSIFIER = "ForSequenceClassification"
_PARTS = ("dense.weight", "dense.bias", "out_proj.weight", "out_proj.bias")
_HEAD = {f"classification_head.{part}" for part in _PARTS}
_UNSAID = ("no", "yes")
"""The two outputs of a model whose config.json says nothing about them."""
_FILES = ["*.json", "*.model", "*.safetensors"]
_PICKLES = "pytorch_model*.bin"
_HEADLESS = (
    "the weights hold no classification head, so every score would be random. This is T5 itself "
    "or unfinished training; take a checkpoint that was trained as an evaluator"
)


def names_hub(place: str) -> bool:
    """Return whether `place` may be a model on the hub, ``owner/name``, and is no local folder."""
    local = place.startswith(("/", "./", "../", "~")) or Path(place).is_dir()
    return place.count("/") == 1 and not local


def locate(place: str, revision: str | None) -> Path:
    """Return the folder at `place`, or the downloaded folder of the hub model of this name.

    Raises:
        EvaluatorError: it is neither.
    """
    path = Path(place).expanduser()
    if path.is_dir():
        return path
    if not names_hub(place):
        raise refusal(place, "there is no such folder. Give the folder that holds config.json")
    from huggingface_hub import snapshot_download

    try:
        path = Path(snapshot_download(place, revision=revision, allow_patterns=_FILES))
        if not any(path.glob("*.safetensors")):
            snapshot_download(place, revision=revision, allow_patterns=_PICKLES)
    except (OSError, ValueError) as error:
        problem = (
            "it is neither a folder nor can it be had from the Hugging Face hub. Check the name "
            f"and the network ({first_line(error)})"
        )
        raise refusal(place, problem) from error
    return path


def check(folder: Path) -> list[Path]:
    """Check what can be checked without loading weights; return the files of the weights.

    Raises:
        EvaluatorError: this is no T5 with one output, or a file is missing or damaged.
    """
    _check_config(folder)
    if not any((folder / name).is_file() for name in ("spiece.model", "tokenizer.json")):
        problem = "there is no tokenizer. Copy spiece.model from the model it was trained from"
        raise refusal(folder, problem)
    files = _weights(folder)
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        raise refusal(folder, f"{missing[0]} is missing. Copy the checkpoint again, whole")
    named = {name for path in files for name in _names(path)}
    if named and not named >= _HEAD:
        raise refusal(folder, _HEADLESS)
    return files


def load_tokenizer(folder: Path) -> Any:
    """Return T5's tokenizer, built from tokenizer.json or else from spiece.model."""
    if not (folder / "tokenizer.json").is_file():
        _check_pieces(folder)
    from transformers import T5Tokenizer

    try:
        with quietly():
            return T5Tokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"its tokenizer cannot be read. Copy it again ({first_line(error)})"
        raise refusal(folder, problem) from error


def load_model(folder: Path, dtype: str, device: "torch.device") -> Any:
    """Return the model on `device`, in evaluation mode, every weight from the checkpoint."""
    from safetensors import SafetensorError
    from transformers import T5ForSequenceClassification

    try:
        with quietly():
            loaded: Any = T5ForSequenceClassification.from_pretrained(
                folder,
                dtype=dtype,
                local_files_only=True,
                weights_only=True,
                output_loading_info=True,
            )
            model, missing = loaded[0], loaded[1]["missing_keys"]
            if not missing:
                return model.to(device).eval()
    except pickle.UnpicklingError as error:
        problem = (
            "its .bin holds more than tensors and could run code, so it was not loaded. Save the "
            "model where it was made with save_pretrained(…, safe_serialization=True)"
        )
        raise refusal(folder, problem) from error
    except (OSError, RuntimeError, ValueError, TypeError, EOFError, SafetensorError) as error:
        problem = f"its weights cannot be loaded. Copy them again, whole ({first_line(error)})"
        raise refusal(folder, problem) from error
    lacks = f"{len(missing)} weights are missing, such as {min(missing)}. Copy them again, whole"
    raise refusal(folder, _HEADLESS if missing & _HEAD else lacks)


def refusal(place: str | Path, problem: str) -> EvaluatorError:
    """Return the error that says what is wrong with the checkpoint at `place`."""
    return EvaluatorError(f"evaluator {place}: {problem}")


def _check_config(folder: Path) -> None:
    config = _json(folder, folder / "config.json")
    kinds = config.get("architectures") or [ARCHITECTURE]
    if config.get("model_type") != "t5" or ARCHITECTURE not in kinds:
        described = f"model_type {config.get('model_type')!r}, architectures {kinds}"
        problem = f"config.json describes no {ARCHITECTURE} ({described}). Give another folder"
        raise refusal(folder, problem)
    if (labels := _outputs(config)) != 1:
        problem = f"it has {labels} outputs; the paper's evaluator has one, trained by regression"
        raise refusal(folder, problem)


def _outputs(config: Mapping[str, Any]) -> int:
    return int(config.get("num_labels") or len(config.get("id2label") or _UNSAID))


def check_classifier(folder: Path, config: Mapping[str, Any]) -> None:
    """Check that `config` describes a model with one output; no weights are loaded.

    Raises:
        EvaluatorError: it is another one, such as an encoder without a head.
    """
    kinds = config.get("architectures") or [_CLASSIFIER]
    if not any(_CLASSIFIER in kind for kind in kinds):
        lacks = f"it is a {' or '.join(kinds)}, which has no output of its own"
    elif (outputs := _outputs(config)) != 1:
        lacks = f"it has {outputs} outputs"
    else:
        return
    raise refusal(folder, f"{lacks}; an evaluator has one. Train one: crag train")


def _weights(folder: Path) -> list[Path]:
    """Return the files with weights, in the order in which transformers looks for them."""
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            return [folder / shard for shard in sorted(set(_shards(folder, index)))]
    problem = "there are no weights (model.safetensors or pytorch_model.bin). Copy them there"
    raise refusal(folder, problem)


def _shards(folder: Path, index: Path) -> list[str]:
    shards = _json(folder, index).get("weight_map")
    if isinstance(shards, dict) and shards:
        return [str(name) for name in shards.values()]
    raise refusal(folder, f"{index.name} names no weights. Copy the checkpoint again, whole")


def _names(path: Path) -> Iterator[str]:
    """Yield the names of the weights in a safetensors file, read from its header."""
    if path.suffix != ".safetensors":
        return
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            yield from file.keys()
    except (OSError, SafetensorError) as error:
        problem = f"{path.name} is damaged or cut short. Copy it again ({first_line(error)})"
        raise refusal(path.parent, problem) from error


def _check_pieces(folder: Path) -> None:
    """Check that spiece.model can be read; transformers would try another format instead."""
    require("torch", "the tokenizer of a T5 evaluator", "google.protobuf", "sentencepiece")
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from google.protobuf.runtime_version import VersionError  # type: ignore[import-untyped]

    try:
        from sentencepiece import sentencepiece_model_pb2
    except VersionError as error:
        problem = f"spiece.model cannot be read. Run: pip install 'sentencepiece<0.2.3' ({error})"
        raise refusal(folder, problem) from error
    pieces: Any = sentencepiece_model_pb2
    try:
        pieces.ModelProto().ParseFromString((folder / "spiece.model").read_bytes())
    except (OSError, DecodeError) as error:
        problem = f"spiece.model is damaged. Copy it again ({first_line(error)})"
        raise refusal(folder, problem) from error


def _json(folder: Path, path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise refusal(folder, f"there is no {path.name}. Give the folder that holds it") from error
    except (OSError, ValueError) as error:
        problem = f"{path.name} cannot be read. Copy it again ({first_line(error)})"
        raise refusal(folder, problem) from error
    if not isinstance(content, dict):
        raise refusal(folder, f"{path.name} holds no JSON object. Copy it again")
    return content
