"""Where the browser of the tests is, and how it is started."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run"]
QUIET += ["disable-background-networking", "disable-component-update", "disable-sync"]
NAMED = ("evil.test", "rebind.test", "api")
"""Names that lead to this machine, as a hostile name server has them do."""
QUIET.append(f"host-resolver-rules={','.join(f'MAP {name} 127.0.0.1' for name in NAMED)}")


def executable() -> str:
    """Return the browser that CRAG_TEST_BROWSER names, or the first Chromium on the path."""
    named = os.environ.get("CRAG_TEST_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(
            "no browser: install Chromium (Debian: apt-get install chromium), or name one in "
            "CRAG_TEST_BROWSER"
        )
    return found


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser without a screen, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=executable(), args=[f"--{name}" for name in QUIET]
        )
        yield browser
        browser.close()
