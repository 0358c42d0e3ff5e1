"""Tiny models as GGUF files, for llama.cpp's own server: its converter is in no package."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
from safetensors import safe_open
from transformers import AutoConfig, AutoTokenizer

_TURNED = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
_CUTTERS = {"llama": "gpt-2", "qwen2": "qwen2"}


def write_gguf(folder: Path, path: Path) -> Path:
    """Write a Llama or Qwen2 with a vocabulary of byte pairs, in float32."""
    config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    head = config.hidden_size // config.num_attention_heads
    writer = gguf.GGUFWriter(path, config.model_type)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    _add_vocabulary(writer, folder, config, tokenizer)
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[config.model_type.upper()], config.num_hidden_layers
    )
    for name, tensor in _tensors(folder, config):
        named = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert named is not None, name
        writer.add_tensor(named, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: gguf.GGUFWriter, folder: Path, config: Any, tokenizer: Any) -> None:
    """Add the tokens; reflection tokens are control tokens, as all special ones."""
    described = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = [f"[unused {number}]" for number in range(config.vocab_size)]
    kinds = [gguf.TokenType.NORMAL] * len(tokens)
    for token, number in described["model"]["vocab"].items():
        tokens[number] = token
    for added in described["added_tokens"]:
        tokens[added["id"]], kinds[added["id"]] = added["content"], gguf.TokenType.CONTROL
    merges = described["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_CUTTERS[config.model_type])
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in merges])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_add_bos_token(tokenizer("a").input_ids[0] == tokenizer.bos_token_id)
    writer.add_add_space_prefix(False)  # noqa: FBT003 - the writer's own signature


def _tensors(folder: Path, config: Any) -> Iterator[tuple[str, Any]]:
    """Return the weights by name; Llama's queries and keys in llama.cpp's order of dimensions.

    There it turns neighbouring dimensions by the same angle, transformers those half a head apart;
    of Qwen2 both turn the latter.
    """
    turned = _TURNED if config.model_type == "llama" else {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - no dictionary
                tensor = weights.get_tensor(name).float().numpy()
                kind = next((kind for kind in turned if f".{kind}." in name), None)
                if kind is not None:
                    heads = getattr(config, turned[kind])
                    halves = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, -1)
                    tensor = halves.swapaxes(1, 2).reshape(tensor.shape)
                yield name, tensor
