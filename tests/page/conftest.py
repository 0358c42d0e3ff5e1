"""A browser, and servers for it to visit; `make test-browser` runs what needs them."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.page.chromium import launched
from tests.page.serving import GRAPHS, serving, serving_guide

OBSERVED = """
window.seen = {long: [], violations: []};
new PerformanceObserver((list) => seen.long.push(...list.getEntries().map((one) => one.duration)))
  .observe({type: "longtask", buffered: true});
document.addEventListener("securitypolicyviolation",
  (event) => seen.violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the graphs of fakes."""
    names = ("hostile", "plain", "chat", "many", "large", "harbour", "failing")
    graphs = {name: f"{GRAPHS}:{name}" for name in names}
    with serving(graphs, tmp_path_factory.mktemp("site")) as (url, _):
        yield url


@pytest.fixture
def site(served: str) -> str:
    """Serve the graphs of fakes, with nobody's conversations."""
    found = httpx.post(f"{served}/threads/search", json={"limit": 1000}).json()
    for thread in found:
        httpx.delete(f"{served}/threads/{thread['thread_id']}")
    return served


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve our own guide; the address holds the token."""
    with serving_guide(tmp_path_factory.mktemp("demo")) as url:
        yield url


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open pages; in the end none may have raised an error or broken its own policy."""
    opened: list[tuple[Any, list[str]]] = []

    def open_page(url: str, ready: str = ".node", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        page = context.new_page()
        errors: list[str] = []
        page.add_init_script(OBSERVED)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
        page.goto(url)
        page.wait_for_selector(ready, state="attached")
        opened.append((page, errors))
        return page

    yield open_page
    for page, errors in opened:
        violations = [] if page.is_closed() else page.evaluate("seen.violations")
        page.context.close()
        assert not errors
        assert not violations
