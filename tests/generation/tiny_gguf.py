"""A tiny model of Llama's architecture as GGUF: random weights, a vocabulary of bytes."""

from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WIDTH, _HEADS, _INNER, _CONTEXT = 32, 2, 64, 4096


def write_tiny(path: Path, *, template: str = CHATML, context: int = _CONTEXT) -> Path:
    """Write the model, without a chat template if `template` is empty."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable}
    letters |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    tokens = [letters[byte] for byte in range(256)]
    special = ["<|end|>", "<|im_start|>", "<|im_end|>"]
    kinds = [TokenType.NORMAL] * 256 + [TokenType.CONTROL] * len(special)
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(context)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(kinds))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*tokens, *special])
    writer.add_token_types(kinds)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(256)
    writer.add_add_bos_token(value=False)
    if template:
        writer.add_chat_template(template)
    draw = np.random.default_rng(3)
    shapes = {
        "token_embd": (len(kinds), _WIDTH),
        "output": (len(kinds), _WIDTH),
        "blk.0.attn_q": (_WIDTH, _WIDTH),
        "blk.0.attn_k": (_WIDTH, _WIDTH),
        "blk.0.attn_v": (_WIDTH, _WIDTH),
        "blk.0.attn_output": (_WIDTH, _WIDTH),
        "blk.0.ffn_gate": (_INNER, _WIDTH),
        "blk.0.ffn_up": (_INNER, _WIDTH),
        "blk.0.ffn_down": (_WIDTH, _INNER),
    }
    for name, shape in shapes.items():
        weights = draw.normal(0, 0.5, shape).astype(np.float32)
        if name == "output":  # Only printable ASCII is ever written, and no end.
            weights[:33], weights[127:] = 0, 0
        writer.add_tensor(f"{name}.weight", weights)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
