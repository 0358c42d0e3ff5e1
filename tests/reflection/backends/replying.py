"""What the tests of prompted reflection share: filled-in forms, models and servers that reply."""

import json
import re
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from crag.testing import FakeChatModel


def form(**changed: Any) -> str:
    """Return a judged answer as JSON."""
    values = {"relevance": "relevant", "text": "A fact.", "support": "fully", "utility": 5}
    return json.dumps(values | changed)


def passage_of(messages: list[BaseMessage]) -> str:
    """Return the one passage that a prompt shows, or nothing."""
    found = re.findall(r"<passage>\n(.*?)\n</passage>", messages[-1].text, re.DOTALL)
    assert len(found) <= 1
    return found[0] if found else ""


class ToolCaller(FakeChatModel):
    """Calls the tool it was given with the arguments given, as models with structured output do."""

    arguments: list[dict[str, Any] | None]
    tools: list[str] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.model_copy(update={"tools": [tool.__name__ for tool in tools]})

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.prompts.append(messages)
        given = self.arguments.pop(0)
        calls = [] if given is None else [{"name": self.tools[0], "args": given, "id": "1"}]
        usage: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        message = AIMessage("", tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def completion(*pieces: str | tuple[str, dict[str, float]], refusal: str = "") -> dict[str, Any]:
    """Return a reply of OpenAI's protocol, made of tokens; some with others and log-probabilities.

    A token without others has the log-probability 0.
    """
    tokens = [piece if isinstance(piece, tuple) else (piece, {piece: 0.0}) for piece in pieces]
    content = [
        {
            "token": text,
            "logprob": others[text],
            "bytes": None,
            "top_logprobs": [
                {"token": other, "logprob": p, "bytes": None} for other, p in others.items()
            ],
        }
        for text, others in tokens
    ]
    text = "".join(text for text, _ in tokens)
    message = {"role": "assistant", "content": text or None, "refusal": refusal or None}
    choice = {
        "index": 0, "finish_reason": "stop", "message": message, "logprobs": {"content": content},
    }  # fmt: skip
    usage = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
        "usage": usage,
    }  # fmt: skip
