"""Reflection by a model with the tokens, in this process, through transformers."""

import logging
import threading
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crag.errors import ModelError
from crag.extras import require
from crag.reflection.backends.candidates import Position, Row, TokenReflection
from crag.reflection.driver import spend
from crag.reflection_tokens import END, token_ids
from crag.state import Usage
from crag.torch_models import best_device, length_sorted_batches, load_pretrained

BATCH_SIZE = 32
"""Prompts in one turn: ten passages for each of three hypotheses."""
_logger = logging.getLogger(__name__)


class TransformersReflection(TokenReflection):
    """Reflect with any causal language model whose tokenizer has Self-RAG's tokens.

    `model` is a folder as transformers saves it, or an id on the Hugging Face hub; its weights keep
    the type that they were saved in, and are on CUDA where there is one. All prompts of a call,
    whatever their prefixes, go through the model together, padded on the left; more than 32 go in
    several turns, those of like length together, so that memory stays bounded. In float32 a
    candidate is the same in any batch, while half precision rounds differently in each.

    Without `tokens_required` a model may lack reflection tokens. The model is loaded on first use.
    Threads share it, one after the other.

    Raises:
        ModelError: on use, if the model cannot be loaded, and the next use tries again.
    """

    def __init__(self, model: str | Path, *, tokens_required: bool = True) -> None:
        require("torch", f"the reflecting model {model}", "torch", "transformers")
        self._place = str(Path(model).expanduser())
        self._tokens_required = tokens_required
        self._lock = threading.RLock()
        self._model: Any = None
        self._tokenizer: Any = None

    def __repr__(self) -> str:
        return f"TransformersReflection({self._place!r})"

    def load(self) -> None:
        """Load the model from a folder or the Hugging Face hub now.

        Raises:
            ModelError: it cannot be loaded or lacks a reflection token.
        """
        with self._lock:
            if self._model is not None:
                return
            refused = partial(ModelError, self._place, "unknown")
            where = best_device()
            _logger.info("loading the reflecting model %s onto %s", self._place, where)
            tokenizer, model = load_pretrained(
                "AutoModelForCausalLM", self._place, refused, dtype="auto"
            )
            # A checkpoint's own settings, such as a repetition penalty, are not greedy.
            model.generation_config = type(model.generation_config)()
            numbers = token_ids(tokenizer, required=self._tokens_required)
            names = {number: token for token, number in numbers.items()}
            if tokenizer.eos_token_id is not None:
                names[tokenizer.eos_token_id] = END
            self._tokenizer, self._names = tokenizer, names
            self._model = model.to(where).eval()

    def _generated(self, prompts: Sequence[str], most: int, stops: Collection[str]) -> list[Row]:
        with self._lock:
            self.load()
            asked: list[list[int]] = self._tokenizer(list(prompts)).input_ids
            context = getattr(self._model.config, "max_position_embeddings", None)
            if context and (needed := max(map(len, asked)) + most) > context:
                problem = f"{needed} tokens exceed its context of {context}: shorten the question"
                raise ModelError(self._place, "failed", problem)
            rows: dict[int, Row] = {}
            for batch in length_sorted_batches(list(map(len, asked)), BATCH_SIZE):
                made = self._batch([asked[place] for place in batch], most, {END, *stops})
                rows |= zip(batch, made, strict=True)
        written = sum(len(row.positions) for row in rows.values())
        read = sum(map(len, asked))
        spend(Usage(llm_calls=1, input_tokens=read, output_tokens=written))
        return [rows[place] for place in range(len(prompts))]

    def _batch(self, prompts: list[list[int]], most: int, stops: Collection[str]) -> list[Row]:
        """Generate greedily for all prompts at once, each until a stop or `most` tokens."""
        import torch
        from transformers import GenerationConfig

        device, names = self._model.device, self._names or {}
        reflecting = {number: token for number, token in names.items() if token != END}
        enders = [number for number, token in names.items() if token in stops]
        listed = torch.tensor(list(reflecting), device=device, dtype=torch.long)
        chosen: list[torch.Tensor] = []
        seen: list[torch.Tensor] = []

        def record(_: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            """Keep, of one step (rows x vocabulary), what reflection needs of the raw logits."""
            logs = scores.float().log_softmax(-1)
            chosen.append(logs.max(-1).values)
            seen.append(logs[:, listed])
            return scores

        width = max(map(len, prompts))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in prompts])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts])
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                logits_processor=[record],
                generation_config=GenerationConfig(  # type: ignore[no-untyped-call]
                    do_sample=False, max_new_tokens=most, eos_token_id=enders or None,
                    pad_token_id=0, use_cache=True,
                ),
            )  # fmt: skip
        own, others = torch.stack(chosen, dim=1).tolist(), torch.stack(seen, dim=1).tolist()
        rows: list[Row] = []
        for row, prompt in enumerate(prompts):
            numbers = output[row, width:].tolist()
            # Leave out the padding of a row that ended before others did.
            end = next((at for at, n in enumerate(numbers, 1) if n in enders), len(numbers))
            positions = [
                Position(
                    names.get(number, ""),
                    own[row][at],
                    dict(zip(reflecting.values(), others[row][at], strict=True)),
                )
                for at, number in enumerate(numbers[:end])
            ]
            has_ended = numbers[end - 1] in enders
            text = self._text(numbers[: end - has_ended], prompt[-1])
            rows.append(Row(positions, text, is_cut=not has_ended))
        return rows

    def _text(self, ids: Sequence[int], before: int) -> str:
        """Return the text of ids, special ones too; what is `before` decides about a space."""
        whole, known = (
            self._tokenizer.decode(
                given,
                skip_special_tokens=False,
                spaces_between_special_tokens=False,
                clean_up_tokenization_spaces=False,
            )
            for given in ([before, *ids], [before])
        )
        return str(whole).removeprefix(known)
