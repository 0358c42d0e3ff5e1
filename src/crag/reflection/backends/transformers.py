"""Reflection by a model with the tokens, in this process, through transformers."""

import asyncio
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
        whole, known = self._decoded([self.before, *kept]), self._decoded([self.before])
        return whole.removeprefix(known)

    def _decoded(self, ids: list[int]) -> str:
        decoded: str = self.tokenizer.decode(
            ids,
            skip_special_tokens=False,
            spaces_between_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        return decoded


class TransformersReflection:
    """Reflect with any causal language model whose tokenizer has Self-RAG's tokens.

    `model` is a folder as transformers saves it, or an id on the Hugging Face hub; weights must be
    safetensors. `device` is a name such as "cuda:0";
    without it CUDA is used where there is one. `dtype` "auto" is the type the weights were saved
    in. All prompts of a call, whatever their prefixes, go through the model together, padded on the
    left; more than `batch_size` go in several turns, those of like length together, so that memory
    stays bounded. In float32 a candidate is the same in any batch, while half precision rounds
    differently in each.

    Decoding is greedy, and probabilities are those of the raw logits. A passage that does not fit
    into the model's context with the question and the tokens to generate is cut at its end, between
    words, with a warning in the log; the question never is. Weights load on first use, which
    several threads may share; one generates at a time. Without `tokens_required` a model that lacks
    reflection tokens runs too, with neutral critiques: see `CompletionsReflection`.

    Raises:
        SettingsError: `batch_size` is below 1.
        MissingPackageError: the extra `torch` is not installed.
        ModelError: on first use, if the model cannot be loaded, and the next use tries again.
    """

    @property
    def approximation(self) -> str:
        """Empty for a model with the tokens; otherwise that its critiques are neutral."""
        loaded = self._loaded
        return approximation_of(loaded.names.values()) if loaded is not None else ""

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
        self._is_local = _is_local(model)
        self._place = str(Path(model).expanduser() if self._is_local else model)
        self._device, self._dtype = device, dtype
        self._batch_size = batch_size
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
        backend._loaded = _wrap(place, model, tokenizer)
        return backend

    def __repr__(self) -> str:
        return f"TransformersReflection({self._place!r})"

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
            prompts = [_prompt(model, *continuation, limits) for continuation in continuations]
            rows = self._generated(model, prompts, most, stops)
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
            rows_in = [prompts[place] for place in batch]
            made = _generate(model, rows_in, most, stops)
            spend(_usage(rows_in, made, calls=0 if rows else 1))
            rows |= zip(batch, made, strict=True)
        return [rows[place] for place in range(len(prompts))]

    def _model(self) -> LanguageModel:
        if self._loaded is None:
            if self._is_local:
                _check_folder(Path(self._place))
            self._loaded = _load(
                self._place,
                device=self._device,
                dtype=self._dtype,
                tokens_required=self._tokens_required,
            )
        return self._loaded


def _prompt(
    model: LanguageModel, prefix: Prefix, passage: Passage | None, limits: SegmentLimits
) -> list[int]:
    most = limits.max_tokens

    def fits(shown: Passage) -> bool:
        return _fits(model, _ids(model, candidate_prompt(prefix, shown)), most)

    if passage is not None and not fits(passage):
        cut = shortest_cut(passage, fits)
        _logger.warning(
            "the passage %r exceeds the model's context of %s tokens: its first %d of %d "
            "characters are used", passage.title, model.context, len(cut.text), len(passage.text),
        )  # fmt: skip
        passage = cut
    prompt = candidate_prompt(prefix, passage, is_draft=limits.is_draft)
    return _fitting_ids(model, prompt, most)


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


def _load(place: str, *, device: str | None, dtype: str, tokens_required: bool) -> LanguageModel:
    """Load a model from a folder or the Hugging Face hub.

    Raises:
        ModelError: it is neither, it holds no safetensors, its weights do not fit its
            configuration, its tokenizer lacks a reflection token, or there is no such device.
    """
    where = find_device(device, partial(ModelError, place, "unknown"))
    tokenizer = load_tokenizer(place)
    # Before the weights, which take longer.
    names_of(tokenizer, tokens_required=tokens_required)
    _logger.info("loading the reflecting model %s onto %s", place, where)
    model = _load_weights(place, dtype).to(where)
    return _wrap(place, model, tokenizer, tokens_required=tokens_required)


def _wrap(place: str, model: Any, tokenizer: Any, *, tokens_required: bool = True) -> LanguageModel:
    """Return a model that is loaded already, with its tokenizer.

    Raises:
        ModelError: the tokenizer lacks a reflection token, or the model has no row for one.
    """
    from transformers import GenerationConfig

    names = names_of(tokenizer, tokens_required=tokens_required)
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

    Without `tokens_required` a tokenizer may lack any of them.

    Raises:
        ModelError: the tokenizer lacks a reflection token.
    """
    names = {
        number: token for token, number in token_ids(tokenizer, required=tokens_required).items()
    }
    if tokenizer.eos_token_id is not None:
        names[tokenizer.eos_token_id] = END
    return names


def _check_folder(folder: Path) -> None:
    """Check what can be checked without loading weights.

    Raises:
        ModelError: there is no such folder, or it lacks a file.
    """
    if not folder.is_dir():
        raise ModelError(str(folder), "unknown", "there is no such folder")
    if not (folder / "config.json").is_file():
        raise ModelError(str(folder), "unknown", "there is no config.json. Copy the model whole")
    if not any((*folder.glob("*.safetensors"), *folder.glob("*.bin"))):
        problem = "there are no weights as safetensors or .bin. Copy the model whole"
        raise ModelError(str(folder), "unknown", problem)


def _load_weights(place: str, dtype: str) -> Any:
    from transformers import AutoModelForCausalLM

    told = (
        "its weights cannot be loaded. Pickled ones (.bin) that hold more than tensors could run "
        "code: load those where you trust them, and call save_pretrained"
    )
    with _failing(place, told), quietly():
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            place,
            dtype=dtype,
            weights_only=True,
            output_loading_info=True,
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
    from transformers import GenerationConfig, LogitsProcessorList

    reflecting = {number: token for number, token in model.names.items() if token != END}
    enders = [number for number, token in model.names.items() if token in {*stops, END}]
    recorder = _Recorder(list(reflecting), model.device)
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(row)) + row for row in prompts])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts])
    with torch.inference_mode():
        output = model.model.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            logits_processor=LogitsProcessorList([recorder]),
            generation_config=GenerationConfig(  # type: ignore[no-untyped-call]
                do_sample=False,
                max_new_tokens=most,
                eos_token_id=enders or None,
                pad_token_id=0,
                use_cache=True,
            ),
        )
    rows: list[Generated] = []
    outputs = output[:, width:].tolist()
    for prompt, numbers, recorded in zip(prompts, outputs, recorder.rows(), strict=True):
        written = _until(numbers, enders)
        positions = [
            Position(model.names.get(i, ""), own, dict(zip(reflecting.values(), seen, strict=True)))
            for i, (own, seen) in zip(written, recorded, strict=False)
        ]
        rows.append(Generated(positions, written, prompt[-1], model.tokenizer))
    return rows


def _until(ids: list[int], enders: Sequence[int]) -> list[int]:
    """Leave out the padding of a row that ended before others did."""
    end = next((place for place, number in enumerate(ids, start=1) if number in enders), len(ids))
    return ids[:end]


class _Recorder:
    """Keep, of each step of a generation, what reflection needs of the raw logits."""

    def __init__(self, ids: Sequence[int], device: "torch.device") -> None:
        import torch

        self._ids = torch.tensor(list(ids), device=device, dtype=torch.long)
        self._chosen: list[torch.Tensor] = []
        self._seen: list[torch.Tensor] = []

    def __call__(self, input_ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """Record one step (rows x vocabulary) and change nothing."""
        del input_ids
        logs = scores.float().log_softmax(-1)
        self._chosen.append(logs.max(-1).values)
        self._seen.append(logs[:, self._ids])
        return scores

    def rows(self) -> list[list[tuple[float, list[float]]]]:
        """Return for each row and step the greedy token's log-probability and those of the ids."""
        import torch

        chosen = torch.stack(self._chosen, dim=1).tolist()
        seen = torch.stack(self._seen, dim=1).tolist()
        return [list(zip(*both, strict=True)) for both in zip(chosen, seen, strict=True)]
