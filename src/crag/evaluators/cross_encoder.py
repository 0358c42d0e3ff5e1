"""A cross-encoder of the user's: any classifier of transformers with one output."""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from crag.correction.strips import LOWEST
from crag.errors import EvaluatorError
from crag.extras import require
from crag.models.model_card import read_card
from crag.plain import real_path
from crag.state import Thresholds
from crag.torch_models import best_device, load_pretrained

UNCALIBRATED = Thresholds(upper=0.5, lower=-0.5)
"""Thresholds for a card without any: probabilities of three quarters and of one quarter."""
_BATCH = 32
_LONGEST = 512
"""Tokens of an input, unless the card or the model has fewer."""
_LONGEST_TOKEN = 100
"""Characters: no word that a tokenizer keeps whole is longer."""
_FEWEST_TOKENS = 32
"""A tokenizer with fewer tokens has lost its vocabulary."""


class CrossEncoderEvaluator:
    """Score by ``2σ(x) - 1`` of the model's output x, so that scores lie in [-1, 1].

    `folder` holds config.json, safetensors and a tokenizer, as transformers stores them. A score
    reads as a probability p of relevance by p = (score + 1) / 2. Inputs are cut at what the
    folder's card says, at most 512 tokens. An empty text scores -1.0 without the model. The weights
    load on first use; the device is CUDA where there is one. Thread-safe.

    Raises:
        EvaluatorError: config.json describes no model with one output; on first use, if the weights
            or the tokenizer cannot be loaded, and the next use tries again.
        MissingPackageError: the extra `torch` is not installed.
    """

    usual = UNCALIBRATED
    """The thresholds, unless they are on the card."""
    takes_pickles = False
    """Whether the weights may be a .bin file with nothing but tensors."""

    def __init__(self, folder: str | Path) -> None:
        require("torch", f"the evaluator {folder}", "torch", "transformers")
        self.folder = real_path(folder)
        config = self._read_config()
        self.card = read_card(self.folder)
        calibration = self.card.calibration if self.card else None
        self.thresholds = calibration.thresholds if calibration else self.usual
        positions = int(config.get("max_position_embeddings") or _LONGEST)
        self.max_length = self.card.max_length if self.card else min(positions, _LONGEST)
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text, in order; texts of like length share a batch."""
        return scored(
            texts, _BATCH, lambda batch: self._scores(self._logits(question, batch)),
            longest_first=True,
        )  # fmt: skip

    def _logits(self, question: str, texts: Sequence[str]) -> Any:
        import torch

        with self._lock, torch.inference_mode():  # Fast tokenizers are not thread-safe.
            tokenizer, model = self._loaded = self._loaded or self._load()
            inputs = self._inputs(tokenizer, self._cut(question), [*map(self._cut, texts)])
            on_device = {name: values.to(model.device) for name, values in inputs.items()}
            return model(**on_device).logits[:, 0].double().cpu().numpy()

    def _cut(self, text: str) -> str:
        """Return as much of a text as can become tokens; half a surrogate pair is a "?"."""
        return text[: self.max_length * _LONGEST_TOKEN].encode("utf-8", "replace").decode("utf-8")

    def _inputs(self, tokenizer: Any, question: str, texts: Sequence[str]) -> Any:
        """Return question and texts as two segments of an input, the longer one cut first."""
        return tokenizer(
            [question] * len(texts), texts, truncation="longest_first", padding=True,
            max_length=self.max_length, return_tensors="pt",
        )  # fmt: skip

    def _scores(self, logits: Any) -> list[float]:
        scores: list[float] = np.tanh(logits / 2).tolist()
        return scores

    def _read_config(self) -> dict[str, Any]:
        try:
            config: dict[str, Any] = json.loads((self.folder / "config.json").read_text("utf-8"))
            labels = config.get("id2label") or ("no", "yes")
        except (OSError, ValueError, AttributeError) as error:
            problem = "its config.json cannot be read. Give a folder that crag train wrote, or a T5"
            raise self._refusal(f"{problem} in the official format ({error})") from error
        if (outputs := int(config.get("num_labels") or len(labels))) != 1:
            raise self._refusal(f"it has {outputs} outputs; an evaluator has one: crag train")
        return config

    def _load(self) -> tuple[Any, Any]:
        """Return tokenizer and model, every weight from the folder."""
        tokenizer, model = load_pretrained(
            "AutoModelForSequenceClassification", self.folder, self._refusal, dtype="float32",
            use_safetensors=None if self.takes_pickles else True,
        )  # fmt: skip
        if len(tokenizer) - len(tokenizer.all_special_ids) < _FEWEST_TOKENS:
            # Without a vocabulary, transformers builds a tokenizer that maps every word to unknown.
            raise self._refusal("there is no tokenizer. Copy it there, whole")
        return tokenizer, model.to(best_device()).eval()

    def _refusal(self, problem: str) -> EvaluatorError:
        return EvaluatorError(f"evaluator {self.folder}: {problem}")


def scored(
    texts: Sequence[str],
    most: int,
    score: Callable[[list[str]], Iterable[float]],
    *,
    longest_first: bool = False,
    run: Callable[..., Iterable[Any]] = map,
) -> list[float]:
    """Return one score for each text, by calls of `score` with at most `most` texts.

    An empty text scores -1.0 without a call. `longest_first` puts texts of like length into a call;
    `run` makes the calls, as `map` does.
    """
    places = [place for place, text in enumerate(texts) if text.strip()]
    if longest_first:
        places.sort(key=lambda place: -len(texts[place]))
    asked = [texts[place] for place in places]
    groups = [asked[start : start + most] for start in range(0, len(asked), most)]
    scores = [LOWEST] * len(texts)
    for place, found in zip(places, chain.from_iterable(run(score, groups)), strict=True):
        scores[place] = found
    return scores
