"""Models for the speed benchmark: T5 of any shape, and the embedded evaluator for other engines."""

import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.models.lexical import LEXICAL
from crag.models.minilm import official_weights, packaged_model
from crag.models.tensors import read_tensors
from crag.models.weight_delta import DELTA, restored

VOCABULARY, PIECES = 32_128, 8_000
_MATRIX = {"cpu": 2048, "cuda": 8192}
_BUFFER = "embeddings.position_ids"


class Shape(NamedTuple):
    """The sizes of a T5 that its speed depends on."""

    width: int
    inner: int
    """Of the feed-forward layers."""
    heads: int
    """Of 64 numbers each."""
    layers: int
    """Of the encoder, and again of the decoder."""

    def operations(self, tokens: int) -> float:
        """Return the floating-point operations for one pair of so many tokens.

        With d the width, i = 64 · heads, f the inner width and n the tokens, a layer of attention
        takes 8 n d i for its four projections and 4 n² i for scores and values, the feed-forward
        4 n d f. An encoder layer has one attention, a decoder layer two, and the decoder reads all
        n tokens: layers · (24 n d i + 12 n² i + 8 n d f). Norms, softmax and head are left out.
        """
        n, d, i, f = tokens, self.width, 64 * self.heads, self.inner
        return float(self.layers * (24 * n * d * i + 12 * n * n * i + 8 * n * d * f))


SHAPES = {
    "small": Shape(512, 2048, 8, 6),
    "base": Shape(768, 3072, 12, 12),
    "large": Shape(1024, 4096, 16, 24),
}


def write_t5(folder: Path, shape: Shape, texts: Iterable[str]) -> None:
    """Write random weights in the paper's format, with a tokenizer trained on `texts`.

    The embedding is as large as T5's own; the tokenizer knows a quarter as many pieces.
    """
    import torch
    from sentencepiece import SentencePieceTrainer
    from transformers import T5Config, T5ForSequenceClassification, T5Tokenizer

    with (folder / "spiece.model").open("wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=file,
            vocab_size=PIECES,
            hard_vocab_limit=False,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            minloglevel=2,
        )
    torch.manual_seed(0)
    sizes = {
        "d_model": shape.width,
        "d_ff": shape.inner,
        "num_heads": shape.heads,
        "num_layers": shape.layers,
    }
    head = {"num_labels": 1, "decoder_start_token_id": 0}
    config = T5Config.from_dict({"vocab_size": VOCABULARY} | sizes | head)
    T5ForSequenceClassification(config).save_pretrained(folder)
    T5Tokenizer.from_pretrained(folder).save_pretrained(folder)


def without_blend(artefact: Path, folder: Path) -> CrossEncoderEvaluator:
    """Return the embedded evaluator without its lexical features."""
    shutil.copytree(artefact, folder, ignore=shutil.ignore_patterns(LEXICAL))
    return CrossEncoderEvaluator.changed(folder)


def write_bert(artefact: Path, folder: Path, dtype: str) -> None:
    """Write the same weights as transformers and sentence-transformers read them."""
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    weights = restored(official_weights(), read_tensors(artefact / DELTA))
    base = packaged_model() or Path()
    config = AutoConfig.from_pretrained(base, num_labels=1)
    model = BertForSequenceClassification(config)
    model.load_state_dict(
        {
            name if name.startswith("classifier.") else f"bert.{name}": torch.tensor(values)
            for name, values in weights.items()
            if name != _BUFFER
        }
    )
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)


def shortened(artefact: Path, folder: Path, tokens: int) -> Path:
    """Copy the embedded evaluator, so that it cuts at `tokens`."""
    shutil.copytree(artefact, folder)
    card = json.loads((folder / "card.json").read_text("utf-8"))
    (folder / "card.json").write_text(json.dumps(card | {"max_length": tokens}), "utf-8")
    return folder


def peak(device: str, dtype: str) -> float:
    """Return the operations per second of a large product of matrices: the best of ten."""
    import torch

    size = _MATRIX[device]
    left = torch.rand(size, size, device=device, dtype=getattr(torch, dtype))
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        product = left @ left
        product[0, 0].item()  # Waits for the device.
        seconds.append(time.perf_counter() - started)
    return 2 * float(size) ** 3 / min(seconds)
