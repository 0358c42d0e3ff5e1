"""Reflection by a model with the tokens, in this process, through transformers."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from crag.errors import ModelError, SettingsError
from crag.extras import require
from crag.models.batches import length_sorted_batches
from crag.reflection.backend import (
    Candidate,
    Continuation,
    Decision,
    Passage,
    Prefix,
    SegmentLimits,
)
from crag.reflection.backends.greedy import Generated, generate
from crag.reflection.backends.language_model import LanguageModel, around, check_folder, load
from crag.reflection.backends.reading import length, read_candidate, read_decision, shortest_cut
from crag.reflection.prompt_format import candidate_prompt, decision_prompt
from crag.reflection.spending import spend
from crag.reflection.tokens import RETRIEVE
from crag.state import Usage

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
BATCH_SIZE = 32
"""Prompts in one turn: ten passages for each of three hypotheses."""
_logger = logging.getLogger(__name__)


class TransformersReflection:
    """Reflect with any causal language model whose tokenizer has Self-RAG's tokens.

    `model` is a folder as transformers saves it, or an id on the Hugging Face hub, of which
    `revision` says the version; weights must be safetensors. `device` is a name such as "cuda:0";
    without it CUDA is used where there is one. `dtype` "auto" is the type the weights were saved
    in. All prompts of a call, whatever their prefixes, go through the model together, padded on the
    left; more than `batch_size` go in several turns, those of like length together, so that memory
    stays bounded. In float32 a candidate is the same in any batch, while half precision rounds
    differently in each.

    Decoding is greedy, and probabilities are those of the raw logits. A passage that does not fit
    into the model's context with the question and the tokens to generate is cut at its end, between
    words, with a warning in the log; the question never is. Weights load on first use, which
    several threads may share; one generates at a time.

    Raises:
        SettingsError: `batch_size` is below 1.
        MissingPackageError: the extra `torch` is not installed.
        ModelError: on first use, if the model cannot be loaded, and the next use tries again.
    """

    approximation = ""

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | None = None,
        dtype: Dtype = "auto",
        batch_size: int = BATCH_SIZE,
        revision: str | None = None,
    ) -> None:
        if batch_size < 1:
            raise SettingsError("batch_size", batch_size, "at least 1")
        require("torch", f"the reflecting model {model}", "torch", "transformers")
        self._place = str(Path(model).expanduser()) if _is_local(model) else str(model)
        self._is_local = _is_local(model)
        self._device, self._dtype = device, dtype
        self._batch_size = batch_size
        self._revision = revision
        self._loaded: LanguageModel | None = None
        self._lock = threading.Lock()

    @classmethod
    def around(cls, model: Any, tokenizer: Any, *, batch_size: int = BATCH_SIZE) -> Self:
        """Reflect with a model that is loaded already, on the device it is on.

        Its `generation_config` is replaced by one that changes nothing.

        Raises:
            ModelError: the tokenizer lacks a reflection token, or the model has no row for one.
        """
        place = str(tokenizer.name_or_path or type(model).__name__)
        backend = cls(place, batch_size=batch_size)
        backend._loaded = around(place, model, tokenizer)
        return backend

    def __repr__(self) -> str:
        return f"TransformersReflection({self._place!r})"

    def load(self) -> None:
        """Load the model now, so that what is wrong with it shows before a run.

        Raises:
            ModelError: it cannot be loaded or lacks a reflection token.
        """
        with self._lock:
            self._model()

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the distribution of Retrieve tokens after each prefix, in order.

        Raises:
            ModelError: the model cannot be loaded, or a prefix exceeds its context.
        """
        if not prefixes:
            return []
        with self._lock:
            model = self._model()
            prompts = [_fitting_ids(model, decision_prompt(prefix), 1) for prefix in prefixes]
            rows = self._generated(model, prompts, 1, stops=())
            return [
                read_decision(row.positions[0], row.text(1) or model.tokenizer.eos_token)
                for row in rows
            ]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one greedy candidate for each continuation, in order.

        Raises:
            ModelError: the model cannot be loaded, or question and answer exceed its context.
        """
        if not continuations:
            return []
        most, stops = limits.max_tokens, () if limits.whole_answer else RETRIEVE
        with self._lock:
            model = self._model()
            prompts = [_prompt(model, *one, most) for one in continuations]
            rows = self._generated(model, prompts, most, stops)
            return [
                read_candidate(
                    row.positions,
                    row.text(length(row.positions, limits)),
                    limits,
                    has_passage=one.passage is not None,
                    otherwise="length",
                )
                for one, row in zip(continuations, rows, strict=True)
            ]

    async def adecide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Do as `decide`, in a thread."""
        return await asyncio.to_thread(self.decide, prefixes)

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Do as `candidates`, in a thread."""
        return await asyncio.to_thread(self.candidates, continuations, limits)

    def _generated(
        self, model: LanguageModel, prompts: list[list[int]], most: int, stops: Sequence[str]
    ) -> list[Generated]:
        """Return a row for each prompt, in order; the turns count as one call."""
        rows: dict[int, Generated] = {}
        batches = length_sorted_batches([len(prompt) for prompt in prompts], self._batch_size)
        for batch in batches:
            given = [prompts[place] for place in batch]
            made = generate(model, given, most, stops)
            spend(_usage(given, made, calls=0 if rows else 1))
            rows |= zip(batch, made, strict=True)
        return [rows[place] for place in range(len(prompts))]

    def _model(self) -> LanguageModel:
        if self._loaded is None:
            if self._is_local:
                check_folder(Path(self._place))
            self._loaded = load(
                self._place, revision=self._revision, device=self._device, dtype=self._dtype
            )
        return self._loaded


def _prompt(model: LanguageModel, prefix: Prefix, passage: Passage | None, most: int) -> list[int]:
    def fits(shown: Passage) -> bool:
        return _fits(model, _ids(model, candidate_prompt(prefix, shown)), most)

    if passage is not None and not fits(passage):
        cut = shortest_cut(passage, fits)
        _logger.warning(
            "the passage %r exceeds the model's context of %s tokens: its first %d of %d "
            "characters are used", passage.title, model.context, len(cut.text), len(passage.text),
        )  # fmt: skip
        passage = cut
    return _fitting_ids(model, candidate_prompt(prefix, passage), most)


def _fitting_ids(model: LanguageModel, prompt: str, most: int) -> list[int]:
    ids = _ids(model, prompt)
    if not _fits(model, ids, most):
        problem = (
            f"question and answer so far have {len(ids)} tokens, which with {most} to generate "
            f"exceed its context of {model.context}. Shorten the question or generate fewer"
        )
        raise ModelError(str(model.tokenizer.name_or_path), "failed", problem)
    return ids


def _fits(model: LanguageModel, ids: Sequence[int], most: int) -> bool:
    return model.context is None or len(ids) + most <= model.context


def _ids(model: LanguageModel, prompt: str) -> list[int]:
    ids: list[int] = model.tokenizer(prompt).input_ids
    return ids


def _usage(prompts: Sequence[Sequence[int]], rows: Sequence[Generated], calls: int) -> Usage:
    return Usage(
        llm_calls=calls,
        input_tokens=sum(map(len, prompts)),
        output_tokens=sum(len(row.ids) for row in rows),
    )


def _is_local(model: str | Path) -> bool:
    if isinstance(model, Path) or Path(model).expanduser().is_dir():
        return True
    return model.startswith(("/", "./", "../", "~")) or model.count("/") > 1
