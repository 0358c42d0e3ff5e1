"""What the tests of prompted reflection share: filled-in forms, models and servers that reply."""

import json
import re
from typing import Any

from langchain_core.messages import BaseMessage

from tests import openai_replies


def form(**changed: Any) -> str:
    """Return a judged answer as JSON."""
    values = {"relevance": "relevant", "text": "A fact.", "support": "fully", "utility": 5}
    return json.dumps(values | changed)


def passage_of(messages: list[BaseMessage]) -> str:
    """Return the one passage that a prompt shows, or nothing."""
    found = re.findall(r"<passage>\n(.*?)\n</passage>", messages[-1].text, re.DOTALL)
    assert len(found) <= 1
    return found[0] if found else ""


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
    reply = openai_replies.completion(text or None, (11, 4), refusal=refusal or None)
    reply["choices"][0]["logprobs"] = {"content": content}
    return reply
