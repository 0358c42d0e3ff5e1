"""A browser, and servers for it to visit; `make test-browser` runs what needs them."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.page import graphs
from tests.page.browser import launched, serving_guide
from tests.serve.serving import serving

NAMES = ("crag", "rag", "chat", "large", "failing")
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
    offered = {name: getattr(graphs, name) for name in NAMES}
    with serving(offered, tmp_path_factory.mktemp("site")) as url:
        yield url


@pytest.fixture
def site(served: str) -> str:
    """Serve the graphs of fakes, with nobody's conversations."""
    for thread in httpx.get(f"{served}/api/threads").json():
        httpx.delete(f"{served}/api/threads/{thread['thread']}")
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

    def open_page(url: str, ready: str = "#welcome h2, .turn", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        page = context.new_page()
        errors: list[str] = []
        page.add_init_script(OBSERVED)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda one: one.message[:7] == "Delete " or errors.append(one.message))
        page.goto(url)
        page.wait_for_selector("#graphs option, #token", state="attached")
        page.wait_for_selector(ready)
        opened.append((page, errors))
        return page

    yield open_page
    for page, errors in opened:
        violations = [] if page.is_closed() else page.evaluate("seen.violations")
        page.context.close()
        assert not errors
        assert not violations
