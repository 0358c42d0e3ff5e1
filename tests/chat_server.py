"""A chat model's server on loopback: it replies by the prompt, streams, and can be held up."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SELF_CONTAINED = "What does Corrective RAG do when the action is Ambiguous?"
QUERY = "Corrective RAG, action"
ANSWER = "Then the action is Incorrect [1]."
_TASKS = {
    "<conversation>": SELF_CONTAINED,
    "web search quer": QUERY,
    "<passages>": ANSWER,
}
"""What each prompt of the graphs contains, and what it is answered with."""


class Chat(ThreadingHTTPServer):
    """Speaks OpenAI's protocol, at once or in chunks as it is asked."""

    daemon_threads = True

    def __init__(self, tasks: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._tasks = tasks
        self.prompts: list[str] = []
        """The messages of each request, joined."""
        self.authorizations: list[str | None] = []
        self.arrived = threading.Event()
        """Set by every request."""
        self.free = threading.Event()
        """No request is answered while this is cleared."""
        self.free.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let requests wait for the end of the block; `arrived` says when there is one."""
        self.arrived.clear()
        self.free.clear()
        try:
            yield
        finally:
            self.free.set()

    @contextmanager
    def saying(self, answer: str) -> Iterator[None]:
        """Answer questions with other words within the block."""
        tasks = self._tasks
        self._tasks = {**tasks, "<passages>": answer}
        try:
            yield
        finally:
            self._tasks = tasks

    def reply(self, prompt: str) -> str:
        """Say what the model says to a prompt; to any other, that it is there."""
        return next((said for mark, said in self._tasks.items() if mark in prompt), "Yes.")


class _Handler(BaseHTTPRequestHandler):
    server: Chat  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(str(message["content"]) for message in sent["messages"])
        self.server.prompts.append(prompt)
        self.server.authorizations.append(self.headers["Authorization"])
        self.server.arrived.set()
        self.server.free.wait(30)
        said = self.server.reply(prompt)
        with suppress(ConnectionError):  # A run that was cancelled has gone.
            self._stream(said) if sent.get("stream") else self._whole(said)

    def _whole(self, said: str) -> None:
        message = {"role": "assistant", "content": said}
        self._send("application/json", json.dumps(_part(message=message)))

    def _stream(self, said: str) -> None:
        parts = [_part(delta={"content": f"{word} "}) for word in said.split()]
        lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
        self._send("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))

    def _send(self, media_type: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: Any) -> None: ...  # noqa: A002


def _part(**said: dict[str, str]) -> dict[str, Any]:
    kind = "chat.completion" if "message" in said else "chat.completion.chunk"
    choice = {"index": 0, "finish_reason": "stop" if "message" in said else None, **said}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {
        "id": "1", "object": kind, "created": 1, "model": "local", "choices": [choice],
        **({"usage": usage} if "message" in said else {}),
    }  # fmt: skip


@contextmanager
def chatting(tasks: Mapping[str, str] = _TASKS) -> Iterator[Chat]:
    """Start the server on a free port, and stop it; `tasks` are replies by a part of the prompt."""
    with Chat(tasks) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.free.set()
            server.shutdown()
            thread.join()
