"""A chat model behind HTTP on loopback that replies by what it is asked, always alike."""

import json
import re
from contextlib import AbstractContextManager
from typing import Any

from tests.loopback import Loopback, started
from tests.openai_replies import completion, streamed

_FORM = {"retrieval": "yes", "relevance": "relevant", "text": "It is red.", "support": "fully",
         "utility": 5, "next": "end"}  # fmt: skip


class ChatServer(Loopback):
    """Says yes to passages that hold "indeed", rewrites to "colour", answers "It is red [1].".

    Numbered passages that hold it have the grade 10, others 0. Of an answer it tells one fact: the
    answer itself.
    """

    def __init__(self) -> None:
        super().__init__(self._replied)
        self.prompts: list[str] = []
        """The last message of each request, in order."""
        self.completed: list[str] = []
        """Raw prompts, in order."""
        self.failing = ""
        """A request that holds these words gets status 400."""

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def _replied(self, sent: dict[str, Any]) -> Any:
        if "prompt" in sent:  # Without a chat template.
            self.completed += sent["prompt"]
            texts = enumerate(self.reply(prompt, prompt) for prompt in sent["prompt"])
            choices = [{"index": place, "text": text, "finish_reason": "stop", "logprobs": None}
                       for place, text in texts]  # fmt: skip
            return completion("") | {"object": "text_completion", "choices": choices}
        said = {message["role"]: message["content"] for message in sent["messages"]}
        self.prompts.append(said["user"])
        if self.failing and self.failing in said["user"]:
            return 400, {"error": {"message": "out of order", "type": "server_error"}}
        text = self.reply(said.get("system", ""), said["user"])
        return streamed(text) if sent.get("stream") else completion(text)

    def reply(self, system: str, prompt: str) -> str:
        """Return what the model says."""
        if "one step after another" in prompt:
            return "It states it: yes"
        if "yes or no" in system + prompt:
            passage = re.search(r"<passage>\n(.*?)\n</passage>", prompt, re.DOTALL)
            return "yes" if passage and "indeed" in passage[1] else "no"
        if graded := re.findall(r'<passage number="(\d+)">\n(.*?)\n</passage>', prompt, re.DOTALL):
            grades = [(int(number), 10 * ("indeed" in text)) for number, text in graded]
            return json.dumps({"grades": [{"passage": n, "relevance": one} for n, one in grades]})
        if "JSON of this form" in system:
            return json.dumps(_FORM)
        if "List every fact" in prompt:
            return f"- {prompt.split('<passage>')[1].split('</passage>', maxsplit=1)[0].strip()}"
        return "colour" if prompt.rstrip().endswith("query:") else "It is red [1]."


def chatting() -> AbstractContextManager[ChatServer]:
    """Start a server on a free port, and stop it."""
    return started(ChatServer())
