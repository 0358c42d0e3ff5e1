"""The critic: tokens of its cases, its judgements, and how often they are right."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crag.errors import ModelError, TrainingError
from crag.models.model_card import CARD
from crag.papers.self_rag.critique_cases import (
    KINDS,
    LABELS,
    Case,
    LabelledCase,
    critic_prompt,
)
from crag.papers.self_rag.language_base import padded_left
from crag.papers.self_rag.language_recipe import Form
from crag.papers.self_rag.language_trainer import TokenText, token_text
from crag.papers.self_rag.released_critic import (
    NO_WORDING,
    RELEASED_PAD,
    Wording,
    WrittenLabel,
    released_prompt,
    written_label,
)
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
    tokenizer: "PreTrainedTokenizerBase",
    cases: Sequence[LabelledCase],
    max_length: int,
    form: Form = "ours",
    wording: Wording = NO_WORDING,
) -> tuple[list[TokenText], int]:
    """Return cases as tokens of which only the label is learned, and how many were too long.

    In the released form the label is written out, and the end is learned with it; `wording` is for
    cases without an instruction of their own.
    """
    texts: list[TokenText] = []
    if form == "released":
        for case in cases:
            prompt = released_prompt(case, wording)
            made = written_label(tokenizer, prompt, case.label, max_length - 1)
            if made is not None:
                end: Any = tokenizer.eos_token_id
                whole: list[int] = [*made.ids, end]
                learned = [place >= made.start for place in range(len(whole))]
                texts.append(token_text(whole, learned))
        return texts, len(cases) - len(texts)
    numbers = token_ids(tokenizer)
    for case in cases:
        ids = case_ids(tokenizer, case, max_length - 1)
        if ids is not None:
            texts.append(token_text([*ids, numbers[case.label]], [False] * len(ids) + [True]))
    return texts, len(cases) - len(texts)


class Critic:
    """Judge cases with a trained critic: the likeliest label of each, and the probabilities.

    In the released form the probability of a label is that of its words after the released prompt,
    which begins with `preamble` and has the instructions of `wording`. The released program
    generates greedily instead, so that it may write what is no label.

    Raises:
        ModelError: the form is ours, and the tokenizer lacks a reflection token.
    """

    def __init__(  # noqa: PLR0913 - what differs between critics
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_length: int = 512,
        batch_size: int = BATCH_SIZE,
        form: Form = "ours",
        wording: Wording = NO_WORDING,
        preamble: str = "",
    ) -> None:
        self._model, self._tokenizer = model.eval(), tokenizer
        self._numbers = token_ids(tokenizer) if form == "ours" else {}
        self._max_length, self._batch_size = max_length, batch_size
        self._form, self._wording, self._preamble = form, wording, preamble

    def judge(self, cases: Sequence[Case]) -> list[dict[str, float]]:
        """Return for each case the probabilities of its kind's labels, which sum to 1.

        Raises:
            TrainingError: a case is too long even without its evidence.
            SettingsError: in the released form, there is no instruction for a case.
        """
        if self._form == "released":
            return self._judged_by_words(cases)
        rows = [self._ids(case) for case in cases]
        judged: dict[int, dict[str, float]] = {}
        for batch in length_sorted_batches([len(row) for row in rows], self._batch_size):
            last = self._logits([rows[i] for i in batch])[:, -1]
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
            raise self._too_long(case)
        return ids

    def _too_long(self, case: Case) -> TrainingError:
        message = (
            f"a case of {len(case.instruction) + len(case.output)} characters exceeds the "
            f"critic's {self._max_length} tokens. Shorten instruction and output"
        )
        return TrainingError(message)

    def _judged_by_words(self, cases: Sequence[Case]) -> list[dict[str, float]]:
        rows: list[WrittenLabel] = []
        for case in cases:
            parts = released_prompt(case, self._wording, self._preamble)
            for label in LABELS[case.kind]:
                row = written_label(self._tokenizer, parts, label, self._max_length)
                if row is None:
                    raise self._too_long(case)
                rows.append(row)
        found: dict[int, float] = {}
        for batch in length_sorted_batches([len(row.ids) for row in rows], self._batch_size):
            most = max(len(rows[place].ids) - rows[place].start for place in batch)
            logits = self._logits([rows[place].ids for place in batch], most + 1)
            for place, row_logits in zip(batch, logits.log_softmax(-1), strict=True):
                words = rows[place].ids[rows[place].start :]
                before = row_logits[-len(words) - 1 : -1]
                found[place] = sum(float(one[n]) for one, n in zip(before, words, strict=True))
        likelihoods = iter([math.exp(found[place]) for place in range(len(rows))])
        judged = [{label: next(likelihoods) for label in LABELS[case.kind]} for case in cases]
        return [
            {label: one / (sum(shares.values()) or 1.0) for label, one in shares.items()}
            for shares in judged
        ]

    def _logits(self, rows: Sequence[Sequence[int]], last: int = 1) -> Any:
        """Return the logits (rows x last x vocabulary) of the token after each of the last ones."""
        import torch

        ids, mask = (tensor.to(self._model.device) for tensor in padded_left(rows))
        with torch.inference_mode():
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
                logits_to_keep=last,
                use_cache=False,
            )
        return output.logits.float()


@contextmanager
def _only_a_critic(folder: Path) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError, UnpicklingError) as error:
        first = str(error).strip().partition("\n")[0]
        message = (
            f"it is no critic: {first}. Give the folder that crag train critic wrote, or the "
            "released critic"
        )
        raise ModelError(str(folder), "unknown", message) from error


def critic_recipe(folder: Path) -> Mapping[str, object]:
    """Return the settings of a critic's training, without loading its weights.

    The released one has no card; its tokenizer pads with `RELEASED_PAD`.

    Raises:
        ModelError: there is no critic in `folder`.
    """
    from transformers import AutoTokenizer

    from crag.papers.self_rag.language_card import LanguageModelCard

    with _only_a_critic(folder):
        card = folder / CARD
        if not card.exists() and AutoTokenizer.from_pretrained(folder).pad_token == RELEASED_PAD:
            return {"form": "released", "max_length": 2048}
        return LanguageModelCard.model_validate_json(card.read_bytes()).recipe


def load_critic(  # noqa: PLR0913 - what differs between critics
    folder: Path,
    *,
    device: str | None = None,
    batch_size: int = BATCH_SIZE,
    weights: Literal["auto", "float32", "bfloat16"] = "auto",
    wording: Wording = NO_WORDING,
    preamble: str = "",
) -> Critic:
    """Load a critic that `crag train critic` has saved, or the released one as it is.

    `weights` is the type that the critic computes in. `wording` and `preamble` are for the released
    form.

    Raises:
        ModelError: there is none in `folder`, or it cannot be loaded.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = find_device(device, partial(ModelError, str(folder), "unknown"))
    recipe = critic_recipe(folder)
    with _only_a_critic(folder):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=weights, weights_only=True)
    return Critic(
        model.to(where),
        tokenizer,
        max_length=int(str(recipe.get("max_length", 512))),
        batch_size=batch_size,
        form="released" if recipe.get("form") == "released" else "ours",
        wording=wording,
        preamble=preamble,
    )


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
        table = {
            truth: {label: counts[kind, truth, label] for label in LABELS[kind]}
            for truth in LABELS[kind]
        }
        total = sum(sum(row.values()) for row in table.values())
        if total:
            right = sum(table[label][label] for label in LABELS[kind])
            found[kind] = Agreement(total, right / total, table)
    return found
