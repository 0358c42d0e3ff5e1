"""The critic: tokens of its cases, its judgements, and how often they are right."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from crag.errors import ModelError, TrainingError
from crag.models.model_card import CARD
from crag.papers.self_rag.critique_cases import KINDS, LABELS, Case, LabelledCase, critic_prompt
from crag.papers.self_rag.language_model import TokenText, padded_left, token_text
from crag.papers.self_rag.language_recipe import LanguageModelCard
from crag.plain import first_line
from crag.reflection_tokens import token_ids
from crag.torch_models import find_device, length_sorted_batches

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BATCH_SIZE = 16


def case_ids(tokenizer: "PreTrainedTokenizerBase", case: Case, most: int) -> list[int] | None:
    """Return the tokens of a critic's prompt, at most `most`; the evidence is cut to fit.

    None if it does not fit even without its evidence.
    """
    before, evidence, after = critic_prompt(case)
    head: list[int] = tokenizer(before).input_ids
    middle: list[int] = tokenizer(evidence, add_special_tokens=False).input_ids
    tail: list[int] = tokenizer(after, add_special_tokens=False).input_ids
    room = most - len(head) - len(tail)
    return None if room < 0 else [*head, *middle[:room], *tail]


def critic_texts(
    tokenizer: "PreTrainedTokenizerBase", cases: Sequence[LabelledCase], max_length: int
) -> tuple[list[TokenText], int]:
    """Return cases as tokens of which only the label is learned, and how many were too long."""
    numbers = token_ids(tokenizer)
    texts: list[TokenText] = []
    for case in cases:
        ids = case_ids(tokenizer, case, max_length - 1)
        if ids is not None:
            texts.append(token_text([*ids, numbers[case.label]], [False] * len(ids) + [True]))
    return texts, len(cases) - len(texts)


class Critic:
    """Judge cases with a trained critic: the likeliest label of each, and the probabilities.

    Raises:
        ModelError: the tokenizer lacks a reflection token.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, max_length: int = 512, batch_size: int = BATCH_SIZE
    ) -> None:
        self._model, self._tokenizer = model.eval(), tokenizer
        self._numbers = token_ids(tokenizer)
        self._max_length, self._batch_size = max_length, batch_size

    def judge(self, cases: Sequence[Case]) -> list[dict[str, float]]:
        """Return for each case the probabilities of its kind's labels, which sum to 1.

        Raises:
            TrainingError: a case is too long even without its evidence.
        """
        rows = [self._ids(case) for case in cases]
        judged: dict[int, dict[str, float]] = {}
        for batch in length_sorted_batches([len(row) for row in rows], self._batch_size):
            last = self._logits([rows[i] for i in batch])
            for place, logits in zip(batch, last, strict=True):
                labels = LABELS[cases[place].kind]
                shares = logits[[self._numbers[label] for label in labels]].softmax(-1).tolist()
                judged[place] = dict(zip(labels, shares, strict=True))
        return [judged[place] for place in range(len(cases))]

    def labels(self, cases: Sequence[Case]) -> list[str]:
        """Return the likeliest label of each case."""
        return [max(shares, key=shares.__getitem__) for shares in self.judge(cases)]

    def _ids(self, case: Case) -> list[int]:
        ids = case_ids(self._tokenizer, case, self._max_length)
        if ids is None:
            message = (
                f"a case of {len(case.instruction) + len(case.output)} characters exceeds the "
                f"critic's {self._max_length} tokens. Shorten instruction and output"
            )
            raise TrainingError(message)
        return ids

    def _logits(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return the logits (rows x vocabulary) of the token after each row."""
        import torch

        ids, mask = (tensor.to(self._model.device) for tensor in padded_left(rows))
        with torch.inference_mode():
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
                logits_to_keep=1,
                use_cache=False,
            )
        return output.logits[:, -1].float()


def load_critic(folder: Path, *, device: str | None = None, batch_size: int = BATCH_SIZE) -> Critic:
    """Load a critic that `crag train critic` has saved.

    Raises:
        ModelError: there is none in `folder`, or it cannot be loaded.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = find_device(device, partial(ModelError, str(folder), "unknown"))
    try:
        card = LanguageModelCard.model_validate_json((folder / CARD).read_bytes())
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True)
    except (OSError, ValidationError, ValueError, KeyError, SafetensorError) as error:
        message = f"it is no critic: {first_line(error)}. Give the folder of crag train critic"
        raise ModelError(str(folder), "unknown", message) from error
    most = int(str(card.recipe.get("max_length", 512)))
    return Critic(model.to(where), tokenizer, max_length=most, batch_size=batch_size)


class Agreement(NamedTuple):
    """How labels of one kind agree with the truth."""

    cases: int
    accuracy: float
    confusion: dict[str, dict[str, int]]
    """True label, then label given: how many cases."""


def agreement(cases: Sequence[LabelledCase], given: Sequence[str]) -> Mapping[str, Agreement]:
    """Return for each kind that occurs the accuracy and the confusion table."""
    counts = Counter(
        (case.kind, case.label, label) for case, label in zip(cases, given, strict=True)
    )
    found: dict[str, Agreement] = {}
    for kind in KINDS:
        labels = LABELS[kind]
        table = {truth: {label: counts[kind, truth, label] for label in labels} for truth in labels}
        total = sum(sum(row.values()) for row in table.values())
        if total:
            right = sum(table[label][label] for label in labels)
            found[kind] = Agreement(total, right / total, table)
    return found
