"""A server of OpenAI's protocol that misbehaves as real ones do, each way by its name.

Every way answers from the passage "The barn is let in May." with number 1, in the shape that users
of such servers reported. Where a form is asked for, the answer is its text.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.loopback import completion, streamed

RIGHT = "The barn is let in May [1]."
HALF = f"{RIGHT} The oil is changed every 400"
THOUGHT = "Hmm, the rent is 999"
"""What nobody may be shown."""

Request = dict[str, Any]
Way = Callable[[Request], Any]


def says(text: str, *, finish: str = "stop", **message: Any) -> Way:
    """Answer with a text, whole or in pieces of a few characters."""

    def reply(request: Request) -> Any:
        said = in_form(text) if "Reply with JSON" in str(request.get("messages")) else text
        if not request.get("stream"):
            return completion(said, finish=finish or "stop", **message)
        pieces = [said[at : at + 5] for at in range(0, len(said), 5)]
        return streamed(*pieces, finish=finish)

    return reply


def in_form(text: str) -> str:
    """Fill in any form of reflection with the answer in a text; half of one ends within it."""
    answer = RIGHT if RIGHT in text and text != HALF else text
    judged = {"retrieval": "yes", "relevance": "relevant", "support": "fully", "utility": 5}
    form = json.dumps({**judged, "text": answer}, ensure_ascii=False)
    return form.removesuffix('"}') if text == HALF else text.replace(answer, form)


def _refuses(needs: Callable[[Request], bool], status: int, words: str) -> Way:
    """Refuse every request that has what the server does not take."""

    def reply(request: Request) -> Any:
        if needs(request):
            return status, {"error": {"message": words, "type": "invalid_request_error"}}
        return says(RIGHT)(request)

    return reply


def _without_end(piece: bytes) -> Way:
    def reply(_: Request) -> Iterator[bytes]:
        while True:
            yield piece
            time.sleep(0.02)

    return reply


def _has_system(request: Request) -> bool:
    return any(message["role"] == "system" for message in request["messages"])


_DELTA = streamed("word ", finish="").split(b"data: [DONE]")[0]

CUT: dict[str, Way] = {
    "length": says(HALF, finish="length"),
    "stream_without_reason": lambda request: (
        says(HALF, finish="")(request)
        if request.get("stream")
        else completion(HALF, finish="length")
    ),
    "system_resource": says(HALF, finish="insufficient_system_resource"),
}
"""Replies that end before their end."""
THOUGHTS: dict[str, Way] = {
    name: says(text)
    for name, text in {
        "think": f"<think>\n{THOUGHT}\n</think>\n\n{RIGHT}",
        "mistral": f"[THINK]{THOUGHT}[/THINK]{RIGHT}",
        "kimi": f"◁think▷{THOUGHT}◁/think▷{RIGHT}",
        "gpt_oss": (
            f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant"
            f"<|channel|>final<|message|>{RIGHT}<|return|>"
        ),
        "gpt_oss_without_marks": f"analysisWe look: {THOUGHT}assistantfinal{RIGHT}",
        "gemma": f"<|channel>thought\n{THOUGHT}<channel|>{RIGHT}",
    }.items()
} | {
    "closed_in_mid_line": says(f"{THOUGHT}. So:</think>{RIGHT}"),
    "field": says(RIGHT, reasoning_content=THOUGHT),
}
"""Replies with what the model wrote to itself."""
REFUSALS: dict[str, Way] = {
    "temperature": _refuses(
        lambda request: {"temperature", "stop"} & set(request) != set(),
        400,
        "Unsupported value: 'temperature' does not support 0 with this model.",
    ),
    "unknown_parameter": _refuses(
        lambda request: "max_completion_tokens" in request, 422, "Extra inputs are not permitted"
    ),
    "system_role": _refuses(_has_system, 400, "'messages[0].role' does not support 'system'"),
    "streams": _refuses(
        lambda request: "stream_options" in request, 400, "Unrecognized argument: stream_options"
    ),
    "schema": _refuses(
        lambda request: "response_format" in request, 400, "response_format is not supported"
    ),
}
"""Servers that refuse what many requests have."""
ENDLESS: dict[str, Way] = {
    "words": _without_end(_DELTA), "keep_alive": _without_end(b": keep-alive\n\n"),
}  # fmt: skip
"""Replies that never end."""
ERRORS: dict[str, tuple[Way, str]] = {
    "reason": (
        lambda _: (400, {"error": {"message": "the context is 4096 tokens, you asked for 9000"}}),
        "the context is 4096 tokens",
    ),
    "page": (
        lambda _: (502, b"<html><title>502</title><body>upstream is away</body></html>"),
        "upstream is away",
    ),
    "no_reply": (lambda _: {"code": 1002, "msg": "the quota is used up"}, "the quota is used up"),
}
"""Failures, with the words that the trace has to tell."""
