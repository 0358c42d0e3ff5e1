"""A cross-encoder stored whole, as transformers stores it: any encoder with one output."""

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.correction.scoring import with_title
from crag.evaluators.checkpoint import refusal
from crag.extras import require
from crag.parts import Passage
from crag.plain import first_line
from crag.torch_models import find_device, length_sorted_batches

_LONGEST_TOKEN = 100
"""Characters: no word that a tokenizer keeps whole is longer."""
_FEWEST_TOKENS = 32
"""A tokenizer with fewer tokens has lost its vocabulary."""


class TorchPairs:
    """Question and passage as two segments of one input; thread-safe, loads on first use.

    `folder` holds config.json, safetensors and a tokenizer. Inputs are cut at `max_length` tokens,
    the longer of the two first. The device is CUDA where there is one, else the CPU.

    Raises:
        EvaluatorError: on first use, if this is no model with one output.
        MissingPackageError: the extra `torch` is not installed.
    """

    def __init__(self, folder: Path, *, max_length: int, device: str | None = None) -> None:
        require("torch", f"the evaluator {folder}", "torch", "transformers")
        self._folder = folder.resolve()
        self._max_length = max_length
        self._device = device
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def logits(self, pairs: Sequence[tuple[str, Passage]], batch_size: int) -> NDArray[np.float64]:
        """Return the model's output for each pair."""
        logits = np.empty(len(pairs))
        most = self._max_length * _LONGEST_TOKEN
        short = [
            (question[:most], with_title(passage.title, passage.text)[:most])
            for question, passage in pairs
        ]
        lengths = [len(question) + len(text) for question, text in short]
        with self._lock:  # Fast tokenizers are not thread-safe.
            loaded = self._loaded = self._loaded or self._load()
            for batch in length_sorted_batches(lengths, batch_size):
                logits[batch] = self._forward(*loaded, [short[i] for i in batch])
        return logits

    def _forward(
        self, model: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]]
    ) -> NDArray[np.float64]:
        import torch

        encoded = tokenizer(
            [question for question, _ in pairs],
            [text for _, text in pairs],
            truncation="longest_first",
            max_length=self._max_length,
            padding=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            outputs = model(**encoded.to(model.device)).logits[:, 0].double().cpu().numpy()
        return np.asarray(outputs)

    def _load(self) -> tuple[Any, Any]:
        from safetensors import SafetensorError
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        device = find_device(self._device, partial(refusal, self._folder))
        try:
            tokenizer = AutoTokenizer.from_pretrained(self._folder, local_files_only=True)
            model, report = AutoModelForSequenceClassification.from_pretrained(
                self._folder, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            said = first_line(error)
            problem = f"it cannot be loaded. Copy it again, whole, with its tokenizer ({said})"
            raise refusal(self._folder, problem) from error
        if len(tokenizer) - len(tokenizer.all_special_ids) < _FEWEST_TOKENS:
            # Without a vocabulary, transformers builds a tokenizer that maps every word to unknown.
            raise refusal(self._folder, "there is no tokenizer. Copy it there, whole")
        if lacking := report["missing_keys"]:
            problem = f"it lacks weights, such as {min(lacking)}. Copy it again, whole"
            raise refusal(self._folder, problem)
        return model.to(device).eval(), tokenizer
