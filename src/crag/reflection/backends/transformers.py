"""Reflection by a model with the tokens, in this process, through transformers."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from crag.errors import ModelError, SettingsError
from crag.extras import require
from crag.parts import Candidate, Continuation, Decision, Passage, Prefix, SegmentLimits
from crag.plain import first_line
from crag.reflection.backends.candidates import (
    Position,
    approximation_of,
    length,
    read_candidate,
    read_decision,
    shortest_cut,
)
from crag.reflection.prompt_format import candidate_prompt, decision_prompt
from crag.reflection.spending import spend
from crag.reflection_tokens import END, RETRIEVE, token_ids
from crag.state import Usage
from crag.torch_models import Dtype, find_device, length_sorted_batches, quietly

if TYPE_CHECKING:
    import torch

BATCH_SIZE = 32
"""Prompts in one turn: ten passages for each of three hypotheses."""
_logger = logging.getLogger(__name__)


class LanguageModel(NamedTuple):
    """A model with its tokenizer, on its device, in evaluation mode."""

    model: Any
    tokenizer: Any
    device: "torch.device"
    names: Mapping[int, str]
    """The reflection token of each id; the tokenizer's own token of the end is `END`."""
    context: int | None
    """Tokens that prompt and answer may have together; None if the model does not say."""

    def ids(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt."""
        ids: list[int] = self.tokenizer(prompt).input_ids
        return ids

    def fits(self, prompt: str, most: int) -> bool:
        """Return whether a prompt and `most` generated tokens fit into the context."""
        return self.context is None or len(self.ids(prompt)) + most <= self.context


class Generated(NamedTuple):
    """What was generated for one prompt."""

    positions: list[Position]
    ids: list[int]
    before: int
    """The id of the last token of the prompt; what follows it decides about a leading space."""
    tokenizer: Any

    def text(self, end: int) -> str:
        """Return the text of the first `end` tokens, special ones too, but not that of the end."""
        kept = [i for i, at in zip(self.ids[:end], self.positions, strict=False) if at.token != END]
        whole, known = (
            self.tokenizer.decode(
                ids,
                skip_special_tokens=False,
                spaces_between_special_tokens=False,
                clean_up_tokenization_spaces=False,
            )
            for ids in ([self.before, *kept], [self.before])
        )
        return str(whole).removeprefix(known)


class TransformersReflection:
    """Reflect with any causal language model whose tokenizer has Self-RAG's tokens.

    `model` is a folder as transformers saves it, or an id on the Hugging Face hub. `device` is a
    name such as "cuda:0"; without it CUDA is used where there is one. `dtype` "auto" is the type
    the weights were saved in. All prompts of a call, whatever their prefixes, go through the model
    together, padded on the left; more than `batch_size` go in several turns, those of like length
    together, so that memory stays bounded. In float32 a candidate is the same in any batch, while
    half precision rounds differently in each.

    A passage that exceeds the model's context is cut at its end, between words; the question never
    is. Without `tokens_required` a model that lacks reflection tokens runs too: its critiques are
    neutral, and the sequence score decides. The model is loaded on first use. Threads share it, one
    after the other.

    Raises:
        SettingsError: `batch_size` is less than 1.
        ModelError: on use, if the model cannot be loaded, and the next use tries again.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | None = None,
        dtype: Dtype = "auto",
        batch_size: int = BATCH_SIZE,
        tokens_required: bool = True,
    ) -> None:
        if batch_size < 1:
            raise SettingsError("batch_size", batch_size, "at least 1")
        require("torch", f"the reflecting model {model}", "torch", "transformers")
        self._place = str(Path(model).expanduser())
        self._device, self._dtype, self._batch_size = device, dtype, batch_size
        self._tokens_required = tokens_required
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
        backend._loaded = _wrapped(place, model, tokenizer, names_of(tokenizer))
        return backend

    def __repr__(self) -> str:
        return f"TransformersReflection({self._place!r})"

    @property
    def approximation(self) -> str:
        """Empty for a model with the tokens; otherwise that its critiques are neutral."""
        loaded = self._loaded
        return approximation_of(loaded.names.values()) if loaded is not None else ""

    def load(self) -> None:
        """Load the model now, so that errors show before a run.

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
            prompts = [_fitting(model, decision_prompt(prefix), 1) for prefix in prefixes]
            rows = self._generated(model, prompts, 1, ())
            end = model.tokenizer.eos_token
            return [read_decision(row.positions[0], row.text(1) or end) for row in rows]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one greedy candidate for each continuation, in order.

        Raises:
            ModelError: the model cannot be loaded, or question and answer exceed its context.
        """
        if not continuations:
            return []
        stops = () if limits.whole_answer else RETRIEVE
        with self._lock:
            model = self._model()
            prompts = [_prompt(model, *continuation, limits) for continuation in continuations]
            rows = self._generated(model, prompts, limits.max_tokens, stops)
            return [
                read_candidate(
                    row.positions,
                    row.text(length(row.positions, limits)),
                    limits,
                    has_passage=continuation.passage is not None,
                    otherwise="length",
                )
                for continuation, row in zip(continuations, rows, strict=True)
            ]

    def _generated(
        self, model: LanguageModel, prompts: list[list[int]], most: int, stops: Sequence[str]
    ) -> list[Generated]:
        """Return a row for each prompt, in order; the turns count as one call."""
        rows: dict[int, Generated] = {}
        for batch in length_sorted_batches([len(prompt) for prompt in prompts], self._batch_size):
            made = _generate(model, [prompts[place] for place in batch], most, stops)
            rows |= zip(batch, made, strict=True)
        read, written = sum(map(len, prompts)), sum(len(row.ids) for row in rows.values())
        spend(Usage(llm_calls=1, input_tokens=read, output_tokens=written))
        return [rows[place] for place in range(len(prompts))]

    def _model(self) -> LanguageModel:
        """Load the model from a folder or the Hugging Face hub."""
        if self._loaded is None:
            place = self._place
            where = find_device(self._device, partial(ModelError, place, "unknown"))
            tokenizer = load_tokenizer(place)
            # Before the weights, which take longer.
            names = names_of(tokenizer, tokens_required=self._tokens_required)
            _logger.info("loading the reflecting model %s onto %s", place, where)
            model = _load_weights(place, self._dtype).to(where)
            self._loaded = _wrapped(place, model, tokenizer, names)
        return self._loaded


def _prompt(
    model: LanguageModel, prefix: Prefix, passage: Passage | None, limits: SegmentLimits
) -> list[int]:
    if passage is not None:
        cut = shortest_cut(
            passage, lambda shown: model.fits(candidate_prompt(prefix, shown), limits.max_tokens)
        )
        if cut != passage:
            _logger.warning(
                "the passage %r exceeds the model's context of %s tokens: its first %d of %d "
                "characters are used", passage.title, model.context, len(cut.text),
                len(passage.text),
            )  # fmt: skip
        passage = cut
    prompt = candidate_prompt(prefix, passage, is_draft=limits.is_draft)
    return _fitting(model, prompt, limits.max_tokens)


def _fitting(model: LanguageModel, prompt: str, most: int) -> list[int]:
    ids = model.ids(prompt)
    if not model.fits(prompt, most):
        problem = (
            f"question and answer so far have {len(ids)} tokens, which with {most} to generate "
            f"exceed its context of {model.context}. Shorten the question or generate fewer"
        )
        raise ModelError(str(model.tokenizer.name_or_path), "failed", problem)
    return ids


def _wrapped(place: str, model: Any, tokenizer: Any, names: Mapping[int, str]) -> LanguageModel:
    """Return a model that is loaded already, with its tokenizer.

    Raises:
        ModelError: the model has no row for a token.
    """
    from transformers import GenerationConfig

    rows = model.get_input_embeddings().num_embeddings
    if max(names, default=0) >= rows:
        problem = (
            f"its tokenizer has ids up to {max(names)} but its embeddings only {rows} rows. "
            "Resize them, or take the tokenizer that belongs to the weights"
        )
        raise ModelError(place, "unknown", problem)
    # A checkpoint's own settings, such as a repetition penalty, would change the greedy choice.
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return LanguageModel(model.eval(), tokenizer, model.device, names, context)


def load_tokenizer(place: str) -> Any:
    """Return the tokenizer of a folder or a model on the hub.

    Raises:
        ModelError: there is none that can be read.
    """
    from transformers import AutoTokenizer

    with _failing(place, "its tokenizer cannot be loaded. Check the name, the folder, the network"):
        return AutoTokenizer.from_pretrained(place)


def names_of(tokenizer: Any, *, tokens_required: bool = True) -> dict[int, str]:
    """Return the reflection token of each id, and `END` for the id that ends a text.

    Raises:
        ModelError: the tokenizer lacks a reflection token, and they are required.
    """
    numbers = token_ids(tokenizer, required=tokens_required)
    names = {number: token for token, number in numbers.items()}
    return names if tokenizer.eos_token_id is None else {**names, tokenizer.eos_token_id: END}


def _load_weights(place: str, dtype: str) -> Any:
    from transformers import AutoModelForCausalLM

    told = (
        "its weights cannot be loaded: copy the model whole. Pickled ones (.bin) that hold more "
        "than tensors could run code: load those where you trust them, and call save_pretrained"
    )
    with _failing(place, told), quietly():
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            place, dtype=dtype, weights_only=True, output_loading_info=True
        )
    model, missing = loaded[0], loaded[1]["missing_keys"]
    if missing:
        problem = f"{len(missing)} weights are missing, such as {min(missing)}. Copy them again"
        raise ModelError(place, "unknown", problem)
    return model


@contextmanager
def _failing(place: str, problem: str) -> Iterator[None]:
    """Turn what transformers raises while it loads into an error that says what to do."""
    from safetensors import SafetensorError

    try:
        yield
    except (
        OSError, RuntimeError, ValueError, TypeError, KeyError, SafetensorError, UnpicklingError,
    ) as error:  # fmt: skip
        raise ModelError(place, "unknown", f"{problem} ({first_line(error)})") from error


def _generate(
    model: LanguageModel, prompts: list[list[int]], most: int, stops: Sequence[str]
) -> list[Generated]:
    """Generate greedily for all prompts at once, each until its end, a stop or `most` tokens."""
    import torch
    from transformers import GenerationConfig

    reflecting = {number: token for number, token in model.names.items() if token != END}
    enders = [number for number, token in model.names.items() if token in {*stops, END}]
    listed = torch.tensor(list(reflecting), device=model.device, dtype=torch.long)
    chosen: list[torch.Tensor] = []
    seen: list[torch.Tensor] = []

    def record(_: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """Keep, of one step (rows x vocabulary), what reflection needs of the raw logits."""
        logs = scores.float().log_softmax(-1)
        chosen.append(logs.max(-1).values)
        seen.append(logs[:, listed])
        return scores

    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(row)) + row for row in prompts])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts])
    with torch.inference_mode():
        output = model.model.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            logits_processor=[record],
            generation_config=GenerationConfig(  # type: ignore[no-untyped-call]
                do_sample=False, max_new_tokens=most, eos_token_id=enders or None, pad_token_id=0,
                use_cache=True,
            ),
        )  # fmt: skip
    own, others = torch.stack(chosen, dim=1).tolist(), torch.stack(seen, dim=1).tolist()
    rows: list[Generated] = []
    for row, prompt in enumerate(prompts):
        numbers = output[row, width:].tolist()
        # Leave out the padding of a row that ended before others did.
        end = next((at for at, n in enumerate(numbers, 1) if n in enders), len(numbers))
        positions = [
            Position(
                model.names.get(number, ""),
                own[row][at],
                dict(zip(reflecting.values(), others[row][at], strict=True)),
            )
            for at, number in enumerate(numbers[:end])
        ]
        rows.append(Generated(positions, numbers[:end], prompt[-1], model.tokenizer))
    return rows
