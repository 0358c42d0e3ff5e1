"""The files of the page and the headers they come with, without a browser."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from crag.page.app import ASSETS, app

BUDGET, LOADED = 223_000, 90_000
"""Bytes of all files together, as they are and as browsers load them."""


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


def text_of(name: str) -> str:
    return ASSETS[name].content.decode()


async def test_nothing_but_our_own_files_may_run_or_load(client: httpx.AsyncClient) -> None:
    for path in ["/", *(f"/page/{name}" for name in ASSETS), "/page/missing.js"]:
        answer = await client.get(path)
        assert answer.status_code == (404 if "missing" in path else 200)
        policy = dict(
            part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"


async def test_files_come_compressed_and_once(client: httpx.AsyncClient) -> None:
    first = await client.get("/page/main.js", headers={"Accept-Encoding": "gzip"})
    assert first.headers["Content-Encoding"] == "gzip"
    assert first.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert first.content == ASSETS["main.js"].content
    tag = first.headers["ETag"]
    for known in (tag, f"W/{tag}", f'"older", {tag}'):
        again = await client.get("/page/main.js", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
    plain = await client.get("/page/main.js", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert plain.content == first.content


async def test_nothing_else_of_the_machine_is_served(client: httpx.AsyncClient) -> None:
    for path in ("/page/..%2Fapp.py", "/page/%2E%2E/app.py", "/page/", "/page/app.py"):
        assert (await client.get(path)).status_code == 404


def test_all_files_together_keep_to_their_budget() -> None:
    assert sum(len(asset.content) for asset in ASSETS.values()) <= BUDGET
    assert sum(len(asset.compressed) for asset in ASSETS.values()) < LOADED


def test_nothing_comes_from_elsewhere() -> None:
    for name in ASSETS:
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text_of(name)))
        # The name of SVG and the home of marked, in a comment: nobody fetches them.
        home = {"https://github.com"} if name == "marked.js" else set()
        assert addresses <= {"http://www.w3.org"} | home, name


def test_the_page_holds_no_script_and_no_style_of_its_own() -> None:
    html = text_of("index.html")
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=|javascript:", html)


@pytest.mark.parametrize("name", [name for name in ASSETS if name.endswith(".js")])
def test_no_module_parses_text_as_html_or_code(name: str) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert not re.search(forbidden, text_of(name))


def test_every_file_that_is_named_is_there_and_every_file_is_named() -> None:
    named = {"index.html"}
    for name in ASSETS:
        text = text_of(name)
        named |= set(re.findall(r'"/page/([\w.]+)"', text))
        named |= set(re.findall(r'from "\./([\w.]+)"', text))
    assert named == set(ASSETS)
