"""What the tests of prompted reflection share: filled-in forms, models and servers that reply."""

import json
import re
from typing import Any

from langchain_core.messages import BaseMessage


def form(**changed: Any) -> str:
    """Return a judged answer as JSON."""
    values = {"relevance": "relevant", "text": "A fact.", "support": "fully", "utility": 5}
    return json.dumps(values | changed)


def passage_of(messages: list[BaseMessage]) -> str:
    """Return the one passage that a prompt shows, or nothing."""
    found = re.findall(r"<passage>\n(.*?)\n</passage>", messages[-1].text, re.DOTALL)
    assert len(found) <= 1
    return found[0] if found else ""
