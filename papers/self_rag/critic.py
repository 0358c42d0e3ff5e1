"""The critic: tokens of its cases, its judgements, and how often they are right."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.errors import CragError, ModelError
from crag.models.model_card import CARD
from crag.papers.self_rag.critique_cases import KINDS, LABELS, Case, LabelledCase, critic_prompt
from crag.papers.self_rag.language_model import LanguageModelCard, TokenText, token_text
from crag.plain import first_line
from crag.reflection_tokens import token_ids
from crag.torch_models import best_device, length_sorted_batches

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
    """Judge cases with a trained critic: the likeliest label of each.

    Raises:
        ModelError: the tokenizer lacks a reflection token.
    """

    def __init__(self, model: Any, tokenizer: Any, *, max_length: int = 512) -> None:
        self._model, self._tokenizer = model.eval(), tokenizer
        self._numbers, self._max_length = token_ids(tokenizer), max_length

    def labels(self, cases: Sequence[Case]) -> list[str]:
        """Return the likeliest label of each case.

        Raises:
            CragError: a case is too long even without its evidence.
        """
        rows: list[list[int]] = []
        for case in cases:
            ids = case_ids(self._tokenizer, case, self._max_length)
            if ids is None:
                message = (
                    f"a case of {len(case.instruction) + len(case.output)} characters exceeds the "
                    f"critic's {self._max_length} tokens. Shorten instruction and output"
                )
                raise CragError(message)
            rows.append(ids)
        judged: dict[int, str] = {}
        for batch in length_sorted_batches([len(row) for row in rows], BATCH_SIZE):
            for place, logits in zip(batch, self._logits([rows[i] for i in batch]), strict=True):
                labels = LABELS[cases[place].kind]
                best = logits[[self._numbers[label] for label in labels]].argmax()
                judged[place] = labels[int(best)]
        return [judged[place] for place in range(len(cases))]

    def _logits(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return the logits (rows x vocabulary) of the token after each row."""
        import torch

        device, width = self._model.device, max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)
        mask = torch.tensor(
            [[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device
        )
        with torch.inference_mode():
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
                logits_to_keep=1,
                use_cache=False,
            )
        return output.logits[:, -1].float()


def load_critic(folder: Path) -> Critic:
    """Load a critic that `crag train critic` has saved, onto CUDA where there is one.

    Raises:
        ModelError: there is none in `folder`, or it cannot be loaded.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = best_device()
    try:
        card = LanguageModelCard.model_validate_json((folder / CARD).read_bytes())
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        message = f"it is no critic: {first_line(error)}. Give the folder of crag train critic"
        raise ModelError(str(folder), "unknown", message) from error
    most = int(str(card.recipe.get("max_length", 512)))
    return Critic(model.to(where), tokenizer, max_length=most)


class Agreement(NamedTuple):
    """How labels of one kind agree with the truth."""

    cases: int
    accuracy: float


def agreement(cases: Sequence[LabelledCase], given: Sequence[str]) -> Mapping[str, Agreement]:
    """Return for each kind that occurs how many cases there are, and the share that is right."""
    right: Mapping[str, list[bool]] = {kind: [] for kind in KINDS}
    for case, label in zip(cases, given, strict=True):
        right[case.kind].append(case.label == label)
    judged = {kind: found for kind, found in right.items() if found}
    return {kind: Agreement(len(one), sum(one) / len(one)) for kind, one in judged.items()}
