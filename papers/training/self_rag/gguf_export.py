"""Write a generator as a GGUF file, which llama.cpp's server loads with its tokens intact.

The architectures of Llama and of Qwen2 with a vocabulary of byte pairs are written, as SmolLM2 and
Qwen2.5 have them. For others there is llama.cpp's own converter.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crag.errors import TrainingError
from crag.extras import require
from crag.papers.training.saving import new_folder, outside_faults

if TYPE_CHECKING:
    import gguf

Precision = Literal["float32", "q8_0"]
"""Of the weights in the file: whole, or in llama.cpp's blocks of 32 numbers of 8 bits."""
_ARCHITECTURES = ("llama", "qwen2")
"""As transformers, llama.cpp and the package gguf name them."""
_HEADS = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""What llama.cpp cuts with under the name qwen2."""


class _Vocabulary(NamedTuple):
    """The tokens by id, and what cuts texts into them."""

    cutter: str
    """llama.cpp's name for the rule that cuts a text before byte pairs are merged."""
    tokens: list[str]
    special: list[bool]
    merges: list[str]


def export_gguf(folder: Path, output: Path, precision: Precision = "float32") -> None:
    """Write the model in `folder` (safetensors, tokenizer.json) as GGUF.

    Reflection tokens are control tokens there, as all special ones. `output` is replaced only when
    the new file is complete.

    Raises:
        TrainingError: `folder` holds no such model, llama.cpp would compute or cut texts otherwise,
            or the disk is full.
        MissingPackageError: the extra `train` is not installed.
    """
    require("train", "writing GGUF", "gguf", "torch", "transformers")
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(folder)
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        described = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().partition("\n")[0]
        message = f"{folder} is no model to export: {first}. Give what crag train generator wrote"
        raise TrainingError(message) from error
    vocabulary = _vocabulary(folder, config, described)
    with outside_faults(output), new_folder(output.with_name(f".{output.name}.new")) as made:
        whole = made / output.name
        _write(whole, folder, config, tokenizer, vocabulary, precision)
        whole.replace(output)


def _vocabulary(folder: Path, config: Any, described: Mapping[str, Any]) -> _Vocabulary:
    scaling = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    model, cutter = described["model"], _cutter(described.get("pre_tokenizer") or {})
    checks = (
        (
            config.model_type in _ARCHITECTURES,
            f"its architecture is {config.model_type}, not {' or '.join(_ARCHITECTURES)}",
        ),
        (not getattr(config, "use_sliding_window", False), "it reads through a sliding window"),
        (scaling == "default", f"its positions are scaled ({scaling})"),
        (
            model["type"] == "BPE" and cutter,
            "its vocabulary is not of GPT-2's, SmolLM's or Qwen2's kind",
        ),
        (not described.get("normalizer"), "its tokenizer changes texts before it cuts them"),
        (not model.get("ignore_merges"), "its tokenizer ignores merges"),
    )
    fault = next((fault for good, fault in checks if not good), "")
    if fault:
        message = f"{folder}: {fault}. Use llama.cpp's own convert_hf_to_gguf.py, or vLLM"
        raise TrainingError(message)
    # Rows that a base has beyond its tokens.
    tokens = [f"[unused {number}]" for number in range(config.vocab_size)]
    special = [False] * len(tokens)
    for token, number in model["vocab"].items():
        tokens[number] = token
    for added in described["added_tokens"]:
        tokens[added["id"]], special[added["id"]] = added["content"], True
    pairs = (one.split(" ") if isinstance(one, str) else one for one in model["merges"])
    return _Vocabulary(cutter, tokens, special, [" ".join(pair) for pair in pairs])


def _cutter(rule: Mapping[str, Any]) -> str:
    """Return llama.cpp's name for a pre-tokenizer, or nothing if it has another regex."""
    parts: Sequence[Mapping[str, Any]] = rule.get("pretokenizers") or [rule]
    *before, last = parts
    if [one["type"] for one in parts] == ["Split", "ByteLevel"] and not last.get("use_regex"):
        is_qwen2 = parts[0]["pattern"].get("Regex") == _QWEN2_WORDS
        return "qwen2" if is_qwen2 and not last.get("add_prefix_space") else ""
    bytes_alone = last.get("type") == "ByteLevel" and last.get("use_regex", True)
    if not bytes_alone or last.get("add_prefix_space"):
        return ""
    if [one["type"] for one in before] == ["Digits"] and before[0]["individual_digits"]:
        return "smollm"
    return "" if before else "gpt-2"


def _write(  # noqa: PLR0913, PLR0917 - what a file is made of
    path: Path,
    folder: Path,
    config: Any,
    tokenizer: Any,
    vocabulary: _Vocabulary,
    precision: Precision,
) -> None:
    import gguf

    kept = {"float32": gguf.LlamaFileType.ALL_F32, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer = gguf.GGUFWriter(path, config.model_type)
    writer.add_name(folder.name)
    writer.add_file_type(kept[precision])
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(vocabulary.cutter)
    writer.add_token_list(vocabulary.tokens)
    kinds = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL
    writer.add_token_types([kinds[special] for special in vocabulary.special])
    writer.add_token_merges(vocabulary.merges)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    begins = tokenizer("a").input_ids[0] == tokenizer.bos_token_id
    writer.add_add_bos_token(begins)
    writer.add_add_space_prefix(False)  # noqa: FBT003 - the writer's own signature
    for name, number in (("bos", tokenizer.bos_token_id), ("pad", tokenizer.pad_token_id)):
        if number is not None:
            getattr(writer, f"add_{name}_token_id")(number)
    architecture = gguf.MODEL_ARCH[config.model_type.upper()]
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    for name, tensor in _tensors(folder, config):
        named = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if named is None:
            message = f"{folder}: llama.cpp's {config.model_type} has no weights like {name}"
            raise TrainingError(message)
        _add(writer, named, tensor, precision)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer: "gguf.GGUFWriter", name: str, tensor: Any, precision: Precision) -> None:
    """Add weights; a vector, and rows that no whole blocks make, stay in float32."""
    import gguf

    block, _ = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q8_0]
    if precision == "float32" or tensor.ndim == 1 or tensor.shape[-1] % block:
        writer.add_tensor(name, tensor)
        return
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor(name, gguf.quantize(tensor, kind), raw_dtype=kind)


def _tensors(folder: Path, config: Any) -> Iterator[tuple[str, Any]]:
    """Return the weights by name; Llama's queries and keys in llama.cpp's order of dimensions.

    There it turns neighbouring dimensions by the same angle, transformers those half a head apart;
    of Qwen2 both turn the latter.
    """
    turned = _HEADS if config.model_type == "llama" else {}
    from safetensors import safe_open

    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - no dictionary
                tensor = weights.get_tensor(name).float().numpy()
                kind = next((kind for kind in turned if f".{kind}." in name), None)
                if kind is not None:
                    heads = getattr(config, _HEADS[kind])
                    halves = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, -1)
                    tensor = halves.swapaxes(1, 2).reshape(tensor.shape)
                yield name, tensor
