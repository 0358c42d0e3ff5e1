"""Greedy generation for several prompts at once, with the log-probabilities reflection needs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.reflection.backends.language_model import LanguageModel
from crag.reflection.backends.reading import Position
from crag.reflection.tokens import END

if TYPE_CHECKING:
    import torch


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


def generate(
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
    written = [_until(row, enders) for row in output[:, width:].tolist()]
    positions = [
        [
            Position(model.names.get(i, ""), own, dict(zip(reflecting.values(), seen, strict=True)))
            for i, (own, seen) in zip(ids, recorded, strict=False)
        ]
        for ids, recorded in zip(written, recorder.rows(), strict=True)
    ]
    return [
        Generated(at, ids, prompt[-1], model.tokenizer)
        for at, ids, prompt in zip(positions, written, prompts, strict=True)
    ]


def _until(ids: list[int], enders: Sequence[int]) -> list[int]:
    """Leave out the padding of a row that ended before others did."""
    end = next((place for place, number in enumerate(ids, start=1) if number in enders), len(ids))
    return ids[:end]


class _Recorder:
    """Keep, of each step of a generation, what reflection needs of the raw logits."""

    def __init__(self, ids: Sequence[int], device: "torch.device") -> None:
        import torch

        self._ids = torch.tensor(list(ids), device=device)
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
