"""A real browser on a page of another site: what it can do to the server, and what it cannot.

The same attack runs against the server as it was before there was a guard, so that it shows that it
would find the hole.
"""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.page.foreign import (
    GUARDED,
    KNOWN,
    SCRIPT,
    SWITCHES,
    UNGUARDED,
    Site,
    held,
    visiting,
)
from tests.page.serving import GRAPHS, serving

pytestmark = pytest.mark.browser
GRAPH = "many"
STUDIO = "https://smith.langchain.com"
FEW = "^(fetch .*(GET|POST text/plain)|run|webhook|WebSocket|EventSource|frame|beacon string)$"
"""Some attempts of each kind, for where they all would only take longer."""
OPEN = {
    "assistant", "batch", "beacon text/plain", "command", "cron", "fetch cors POST text/plain",
    "fetch no-cors POST", "form text/plain frame post", "form text/plain window post", "keepalive",
    "run", "webhook", "WebSocket",
}  # fmt: skip
"""What a page could start or write before there was a guard."""


@pytest.fixture(scope="module")
def evil() -> Iterator[Site]:
    with visiting() as site:
        yield site


@pytest.fixture(scope="module", params=["guarded", "unguarded"])
def server(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, bool]]:
    """Serve with everything switched on and without a token, so that nothing else protects."""
    guarded = request.param == "guarded"
    folder = tmp_path_factory.mktemp(request.param)
    configuration = GUARDED if guarded else UNGUARDED
    variables = {"CRAG_SERVE_ALLOW": SWITCHES} if guarded else {}
    with serving({GRAPH: f"{GRAPHS}:{GRAPH}"}, folder, configuration, **variables) as (url, _):
        httpx.post(f"{url}/threads", json={"thread_id": KNOWN}).raise_for_status()
        asked = {"assistant_id": GRAPH, "input": {"question": "What is secret?"}}
        run = httpx.post(f"{url}/threads/{KNOWN}/runs/wait", json=asked, timeout=60)
        assert run.json()["answer"]
        yield url, guarded


def attack(browser: Any, address: str, target: str, hook: str, names: str = "") -> dict[str, str]:
    """Visit a page, let its script try everything, and return what it says became of it."""
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(address)
    page.add_script_tag(content=SCRIPT.read_text("utf-8"))
    found: dict[str, str] = page.evaluate(
        "([base, hook, graph, names]) => attack(base, hook, graph, names)",
        [target, hook, GRAPH, names],
    )
    time.sleep(1)  # What was sent without an answer has arrived.
    context.close()
    return found


def marks(state: dict[str, list[Any]]) -> set[str]:
    """Return the names of the attempts that left something."""
    left = state["threads"] + state["runs"] + state["assistants"]
    names = {one["metadata"].get("attack") for one in left}
    return names | {one["payload"]["metadata"]["attack"] for one in state["crons"]}


def test_a_page_of_another_site(browser: Any, evil: Site, server: tuple[str, bool]) -> None:
    url, guarded = server
    before = held(url)
    found = attack(browser, f"http://evil.test:{evil.server_port}/", url, evil.hook)
    assert len(found) > 100
    read = {name for name, said in found.items() if said.startswith("read")}
    if guarded:
        assert read == set()
        assert held(url) == before
        assert evil.caught == []
    else:
        assert read == {"WebSocket"}
        assert marks(held(url)) >= OPEN
        assert any(b"The kettle boils" in body for body in evil.caught)
        evil.caught.clear()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_page_of_another_port(
    browser: Any, evil: Site, server: tuple[str, bool], name: str
) -> None:
    """It is of the same site, as browsers count sites, and of another origin."""
    url, guarded = server
    before = held(url)
    address = f"http://{name}:{evil.server_port}/"
    found = attack(browser, address, url.replace("127.0.0.1", name), evil.hook, FEW)
    if guarded:
        assert not any(said.startswith("read") for said in found.values())
        assert held(url) == before
        assert evil.caught == []
    else:
        assert found["WebSocket"].startswith("read")
        assert len(held(url)["threads"]) > len(before["threads"])
        evil.caught.clear()


@pytest.mark.parametrize("name", ["rebind.test", "api"])
def test_a_name_that_was_made_to_lead_here(
    browser: Any, evil: Site, server: tuple[str, bool], name: str
) -> None:
    """The page has the server's own origin then: only the name in Host tells them apart."""
    url, guarded = server
    before = held(url)
    target = url.replace("127.0.0.1", name)
    found = attack(browser, target, target, evil.hook, FEW)
    read = {kind for kind, said in found.items() if said.startswith("read")}
    if guarded or name == "rebind.test":
        assert read == set()
        assert held(url) == before
        assert evil.caught == []
    else:
        assert {"fetch cors GET", "fetch same-origin GET", "WebSocket"} <= read
        evil.caught.clear()


def test_deleting_everything(browser: Any, evil: Site, server: tuple[str, bool]) -> None:
    url, guarded = server
    before = held(url)
    page = browser.new_page()
    page.goto(f"http://evil.test:{evil.server_port}/")
    page.add_script_tag(content=SCRIPT.read_text("utf-8"))
    page.evaluate("base => truncate(base)", url)
    page.close()
    assert before["threads"]
    assert held(url)["threads"] == (before["threads"] if guarded else [])


def test_a_link_of_another_site_opens_the_page(
    browser: Any, evil: Site, server: tuple[str, bool]
) -> None:
    url, guarded = server
    if not guarded:
        return
    page = browser.new_page()
    page.goto(f"http://evil.test:{evil.server_port}/")
    link = "url => { const a = document.createElement('a'); a.href = url; a.text = 'Go';"
    page.evaluate(f"{link} document.body.append(a); }}", f"{url}/?graph={GRAPH}")
    page.click("text=Go")
    page.wait_for_selector(".node", state="attached")
    page.close()
