"""What a server that speaks OpenAI's protocol replies, whole and streamed."""

import json
from typing import Any


def completion(
    text: str | None, tokens: tuple[int, int] = (100, 10), *, finish: str = "stop", **message: Any
) -> dict[str, Any]:
    """Return a reply, for which so many tokens were read and written."""
    said = {"role": "assistant", "content": text, **message}
    read, written = tokens
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": said}],
        "usage": {
            "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        },
    }  # fmt: skip


def streamed(*pieces: str, finish: str = "stop") -> bytes:
    """Return a reply in pieces; without a reason to finish, the stream just ends."""
    chunks = [
        {
            "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}],
        }
        for piece in pieces
    ]  # fmt: skip
    end = {"index": 0, "delta": {}, "finish_reason": finish}
    chunks += [chunks[0] | {"choices": [end]}] if finish else []
    lines = [*map(json.dumps, chunks), "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()
