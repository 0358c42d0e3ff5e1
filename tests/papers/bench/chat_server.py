"""A chat model behind HTTP on loopback that replies by what it is asked, always alike."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.openai_replies import completion

_FORM = {"retrieval": "yes", "relevance": "relevant", "text": "It is red.", "support": "fully",
         "utility": 5, "next": "end"}  # fmt: skip


class ChatServer(ThreadingHTTPServer):
    """Says yes to passages that hold "indeed", rewrites to "colour", answers "It is red [1].".

    Numbered passages that hold it have the grade 10, others 0. Of an answer it tells one fact: the
    answer itself.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.prompts: list[str] = []
        """The last message of each request, in order."""
        self.completed: list[str] = []
        """Raw prompts, in order."""
        self.answers: dict[str, str] = {}
        """What is answered to a prompt that holds these words."""
        self.failing = ""
        """A request that holds these words gets status 400."""
        self.seconds = 0.0
        """How long each reply takes."""
        self.busy, self.busiest = 0, 0
        """Requests at the same time, now and at most."""
        self.counting = threading.Lock()
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def reply(self, system: str, prompt: str) -> str:
        """Return what the model says."""
        if "yes or no" in system + prompt:
            passage = re.search(r"<passage>\n(.*?)\n</passage>", prompt, re.DOTALL)
            return "yes" if passage and "indeed" in passage[1] else "no"
        if graded := re.findall(r'<passage number="(\d+)">\n(.*?)\n</passage>', prompt, re.DOTALL):
            grades = [(int(number), 10 * ("indeed" in text)) for number, text in graded]
            return json.dumps({"grades": [{"passage": n, "relevance": one} for n, one in grades]})
        if "JSON of this form" in system:
            return json.dumps(_FORM | {"text": self.answer(prompt, "It is red.")})
        if "List every fact" in prompt:
            return f"- {prompt.split('<passage>')[1].split('</passage>', maxsplit=1)[0].strip()}"
        if prompt.rstrip().endswith("query:"):
            return "colour"
        return self.answer(prompt, "It is red [1].")

    def answer(self, prompt: str, otherwise: str) -> str:
        """Return the answer that was given for words of the prompt."""
        return next((said for words, said in self.answers.items() if words in prompt), otherwise)


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "prompt" in sent:
            self._complete(sent["prompt"])
            return
        said = {message["role"]: message["content"] for message in sent["messages"]}
        prompt = said["user"]
        with self.server.counting:
            self.server.prompts.append(prompt)
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
        self.server.stopping.wait(self.server.seconds)
        with self.server.counting:
            self.server.busy -= 1
        if self.server.failing and self.server.failing in prompt:
            self._send(400, {"error": {"message": "out of order", "type": "server_error"}})
            return
        whole = completion(self.server.reply(said.get("system", ""), prompt))
        self._send(200, _streamed(whole) if sent.get("stream") else whole)

    def _complete(self, prompts: list[str]) -> None:
        """Complete raw prompts, as a server without a chat template does."""
        self.server.completed += prompts
        texts = [self.server.reply(prompt, prompt) for prompt in prompts]
        choices = [{"index": place, "text": text, "finish_reason": "stop", "logprobs": None}
                   for place, text in enumerate(texts)]  # fmt: skip
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        about = {"id": "1", "object": "text_completion", "created": 1, "model": "m"}
        self._send(200, {**about, "choices": choices, "usage": usage})

    def _send(self, status: int, body: Any) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except ConnectionError:  # The client was killed, which is what some tests do.
            self.close_connection = True

    def log_message(self, *_: Any) -> None: ...


def _streamed(whole: dict[str, Any]) -> bytes:
    """Return a completion as one piece of a stream."""
    choice = {"index": 0, "finish_reason": "stop", "delta": whole["choices"][0]["message"]}
    piece = whole | {"object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n".encode()


@contextmanager
def chatting() -> Iterator[ChatServer]:
    """Start a server on a free port, and stop it."""
    with ChatServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()
