"""A model behind a loopback server that speaks the completions protocol as vLLM does.

It shares no code with the back ends: one prompt at a time, no padding, no cache.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.loopback import Loopback, started


class CompletionsServer(Loopback):
    """Completes prompts greedily with the model in a folder; keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        super().__init__(self._answer)
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.most_listed: int | None = None
        """Log-probabilities listed for each token, whatever is asked; None: as many as asked."""
        self.is_llama_cpp = False
        """Whether it writes as llama.cpp's own server does, recorded from that."""
        self.reply: Any = None
        """What a completion gets instead of the model's: a JSON value or bytes, or a status."""

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def _answer(self, asked: dict[str, Any]) -> Any:
        if "prompt" not in asked:
            return {"eos_token": self.tokenizer.eos_token} if self.is_llama_cpp else (404, {})
        if "max_tokens" not in asked:
            ids = self.tokenizer.encode(asked["prompt"], add_special_tokens=False)
            return {"tokens": ids}
        if isinstance(self.reply, int):
            return self.reply, {}
        return self._completions(asked) if self.reply is None else self.reply

    def _completions(self, asked: dict[str, Any]) -> dict[str, Any]:
        prompts = asked["prompt"] if isinstance(asked["prompt"], list) else [asked["prompt"]]
        choices = [self._choice(prompt, asked) | {"index": i} for i, prompt in enumerate(prompts)]
        counted = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        about = {"id": "cmpl-1", "object": "text_completion", "created": 0, "usage": counted}
        return about | {"model": asked["model"], "choices": choices}

    def _choice(self, prompt: str, asked: dict[str, Any]) -> dict[str, Any]:
        ids = self.tokenizer(prompt).input_ids
        stops = asked.get("stop_token_ids", [])
        start, finish = len(ids), "length"
        while finish == "length" and len(ids) < start + asked["max_tokens"]:
            ids.append(int(self._logs(ids)[-1].argmax()))
            if ids[-1] in {self.tokenizer.eos_token_id, *stops}:
                finish = "stop"
        text = self.tokenizer.decode(ids[start:], skip_special_tokens=asked["skip_special_tokens"])
        told = self._told(ids, start, asked) if asked.get("logprobs") is not None else None
        return {"text": text, "finish_reason": finish, "logprobs": told}

    def _told(self, ids: list[int], first: int, asked: dict[str, Any]) -> dict[str, Any]:
        most = asked["logprobs"] if self.most_listed is None else self.most_listed
        logs = self._logs(ids)
        tops: list[dict[str, float] | None] = []
        own: list[float | None] = []
        for place in range(first, len(ids)):
            listed = logs[place - 1].topk(min(most, logs.shape[-1])).indices.tolist()
            row = {self._name(i, asked): float(logs[place - 1, i]) for i in [ids[place], *listed]}
            tops.append(dict(list(row.items())[: max(most, 1)]))
            own.append(float(logs[place - 1, ids[place]]))
        if self.is_llama_cpp:
            return {"content": [
                {"id": ids[first + at], "logprob": own[at], "top_logprobs": [
                    {"id": int(name.removeprefix("token_id:")), "logprob": probability}
                    for name, probability in (top or {}).items()
                ]}
                for at, top in enumerate(tops)
            ]}  # fmt: skip
        names = [self._name(i, asked) for i in ids[first:]]
        offsets = [0] * len(names)
        return {
            "tokens": names, "token_logprobs": own, "top_logprobs": tops, "text_offset": offsets
        }  # fmt: skip

    def _logs(self, ids: list[int]) -> Any:
        import torch

        with torch.inference_mode():
            return self.model(torch.tensor([ids])).logits[0].float().log_softmax(-1)

    def _name(self, number: int, asked: dict[str, Any]) -> str:
        by_number = asked.get("return_tokens_as_token_ids")
        return f"token_id:{number}" if by_number else str(self.tokenizer.decode([number]))


def completing(folder: Path) -> AbstractContextManager[CompletionsServer]:
    """Start a server of the model in a folder, and stop it."""
    return started(CompletionsServer(folder))
