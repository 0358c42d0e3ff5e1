"""The paper's evaluator: T5 with one regression output (CRAG, Sec. 4.2)."""

import logging
import threading
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crag.correction.scoring import LOWEST, joined
from crag.evaluators.batches import first_tokens, scored_in_batches
from crag.evaluators.checkpoint import (
    check,
    load_model,
    load_tokenizer,
    locate,
    names_hub,
    refusal,
)
from crag.extras import require
from crag.models.model_card import ModelCard, read_card
from crag.state import Thresholds
from crag.torch_models import Dtype, find_device

if TYPE_CHECKING:
    import torch

PAPER = Thresholds(upper=0.592, lower=-0.995)
"""What the official scripts use for PopQA; the paper prints 0.59 and -0.99."""
MAX_LENGTH = 512
_log = logging.getLogger(__name__)


class T5Evaluator:
    """Score by a T5 that was trained as the paper's, or by the authors' own checkpoint.

    `checkpoint` is a folder as transformers saves it (safetensors, or a .bin with nothing but
    tensors) or an id on the Hugging Face hub, of which `revision` says the version. The score is
    the raw output: trained towards -1 and 1, but not limited to them. Question and text are cut
    together at 512 tokens, or at what the folder's card says; the official scoring of documents
    (unlike that of strips) lets longer ones through. A special token that a text spells out, such
    as ``</s>``, counts as an unknown word: T5 reads its answer where the text ends.

    `device` is a name such as "cuda:0"; without it CUDA is used where there is one. `dtype` "auto"
    is the type the weights were saved in; T5 may overflow in float16, which gives NaN.
    `compat` "official" scores as the published loop does, one pair at a time padded to the full
    length: the same scores, slower. `thresholds` override those of the card, which
    override the paper's for PopQA. Weights load on first use, which several threads may share.

    Raises:
        EvaluatorError: the thresholds or the batch size make no sense; on first use, if the
            checkpoint cannot be loaded, and the next use tries again.
        MissingPackageError: the extra `torch` is not installed.
    """

    def __init__(  # noqa: PLR0913 - each is an option
        self,
        checkpoint: str | Path,
        *,
        device: str | None = None,
        dtype: Dtype = "float32",
        batch_size: int = 32,
        compat: Literal["official"] | None = None,
        thresholds: Thresholds | None = None,
        revision: str | None = None,
    ) -> None:
        require("torch", f"the evaluator {checkpoint}", "torch", "transformers")
        path = Path(checkpoint).expanduser()
        named = isinstance(checkpoint, str) and not path.is_dir()
        self._place = str(checkpoint) if named else str(path.absolute())
        self._revision = revision
        self._device, self._dtype = device, dtype
        self._batch_size = 1 if compat == "official" else batch_size
        self._padded = compat == "official"
        self._given = thresholds
        self._loaded: _LoadedT5 | None = None
        self._lock = threading.Lock()
        if batch_size < 1:
            raise refusal(self._place, f"batch_size cannot be {batch_size}: at least 1")
        if thresholds is not None and thresholds["lower"] > thresholds["upper"]:
            raise refusal(self._place, f"thresholds cannot be {thresholds}: lower <= upper")

    def __repr__(self) -> str:
        return f"T5Evaluator({self._place!r})"

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds given, else those of the folder's card, else the paper's for PopQA.

        The card of a model on the hub comes with its download.

        Raises:
            EvaluatorError: nothing was given and the card cannot be read.
        """
        if self._given is not None:
            return self._given
        calibration = self.card.calibration if self.card else None
        return PAPER if calibration is None else calibration.thresholds

    def verify(self) -> None:
        """Check what can be checked without loading weights or asking the hub.

        Raises:
            EvaluatorError: the device is unknown, or the folder holds no such evaluator.
        """
        if self._device is not None:
            find_device(self._device, partial(refusal, self._place))
        if not names_hub(self._place):
            check(self._folder)
            self.card  # noqa: B018 - reading it is the check

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the raw output for each text, in order; an empty text scores -1.0 without it.

        Texts of like length share a batch, padded to its longest. A model that overflows returns
        NaN, and so does this.
        """
        places = [index for index, text in enumerate(texts) if text.strip()]
        scores = [LOWEST] * len(texts)
        if not places:
            return scores
        with self._lock:  # Fast tokenizers are not thread-safe.
            loaded = self._loaded = self._loaded or self._load()
            outputs = scored_in_batches(
                [texts[index] for index in places],
                self._batch_size,
                lambda batch: self._forward(loaded, question, batch),
            )
        for index, score in zip(places, outputs, strict=True):
            scores[index] = score
        return scores

    def _forward(self, loaded: "_LoadedT5", question: str, texts: Sequence[str]) -> list[float]:
        import torch

        rows = [loaded.encode(joined(question, text), self._max_length) for text in texts]
        width = self._max_length if self._padded else max(map(len, rows))
        ids = torch.tensor([row + [loaded.pad] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        with torch.inference_mode():
            output = loaded.model(
                input_ids=ids.to(loaded.device),
                attention_mask=mask.to(loaded.device),
                use_cache=False,
            )
        scores: list[float] = output.logits[:, 0].float().tolist()
        return scores

    def _load(self) -> "_LoadedT5":
        device = find_device(self._device, partial(refusal, self._place))
        files = check(self._folder)
        tokenizer = load_tokenizer(self._folder)
        size = sum(path.stat().st_size for path in files) / 1e9
        _log.info("loading the evaluator %s onto %s (%.2f GB)", self._place, device, size)
        model = load_model(self._folder, self._dtype, device)
        return _LoadedT5(model, tokenizer, device, tokenizer.pad_token_id)

    @cached_property
    def _folder(self) -> Path:
        return locate(self._place, self._revision)

    @cached_property
    def card(self) -> ModelCard | None:
        """The card in the folder, if there is one."""
        card = read_card(self._folder)
        if card is not None and card.kind != "t5":
            problem = f"its card says that it is a {card.kind}. Load it as one"
            raise refusal(self._folder, problem)
        return card

    @property
    def _max_length(self) -> int:
        return self.card.max_length if self.card else MAX_LENGTH


class _LoadedT5(NamedTuple):
    model: Any
    tokenizer: Any
    device: "torch.device"
    pad: int

    def encode(self, text: str, most: int) -> list[int]:
        """Return at most `most` token ids; the end-of-text token stands at the end and only there.

        The model reads its answer at the last one and refuses batches whose rows differ in number.
        """
        end, unknown = self.tokenizer.eos_token_id, self.tokenizer.unk_token_id
        ids = first_tokens(text, most - 1, lambda part: self._pieces(part, most))
        return [unknown if id_ in {end, self.pad} else id_ for id_ in ids] + [end]

    def _pieces(self, text: str, most: int) -> list[int]:
        ids: list[int] = self.tokenizer(
            text, add_special_tokens=False, truncation=True, max_length=most
        ).input_ids
        return ids
