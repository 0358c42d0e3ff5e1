"""`crag ask` as users start it: the web answers what the documents do not, on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crag.parts import Hit
from tests import commands
from tests.commands import Done
from tests.loopback import Loopback
from tests.web.engines import KEY, queries, searching
from tests.web.site import Website, website

pytestmark = pytest.mark.slow
QUESTION = "Who designed the Cape Merrow Lighthouse?"
KEYWORDS = "designed Cape Merrow Lighthouse"
KETTLE = "# Kettles\n\nA kettle boils water in three minutes. Its lid must be closed.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of one file, and nothing else."""
    made = tmp_path_factory.mktemp("asked")
    (made / "kettle.md").write_text(KETTLE)
    assert "1 added" in crag(made, {}, "index", "kettle.md").stdout
    return made


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        yield running


@pytest.fixture
def tavily(site: Website) -> Iterator[Loopback]:
    hits = [
        Hit("Salt roads", site.at("/navigation"), "About old roads of salt."),
        Hit("Gone", site.at("/404"), "A page about roads that is gone."),
        Hit("Cape Merrow", site.at("/article"), "A lighthouse on the island of Orrin."),
    ]
    with searching("tavily", hits) as (server, _):
        yield server


def crag(folder: Path, variables: dict[str, str], *arguments: str, code: int = 0) -> Done:
    """Run the command in `folder` with these variables and no others of ours."""
    environment = {"COLUMNS": "400"} | variables
    done = commands.crag(*arguments, folder=folder, environment=environment)
    assert done.returncode == code, done.stderr
    return done


def configured(server: Loopback) -> dict[str, str]:
    return {"TAVILY_API_KEY": KEY, "TAVILY_BASE_URL": server.url, "CRAG_ALLOW_LOOPBACK": "true"}


def test_the_terminal_shows_what_was_found_read_kept_and_cited(
    folder: Path, site: Website, tavily: Loopback
) -> None:
    shown = crag(folder, configured(tavily), "ask", QUESTION, "--trace").stdout
    for expected in (
        f"action: incorrect, query: {KEYWORDS}, upper 0.",
        f"  read {site.at('/article')} 9 paragraphs\n",
        f"  failed {site.at('/404')} the server answered with status 404\n",
        "page_failed: ",
        "→ its snippet is used",
        " (below the strip threshold -0.5)",
        "It was designed by the engineer Edith Halloran and first lit on 3 March 1874",
        f"\n  [1] {site.at('/article')}, paragraph 1\n",
    ):
        assert expected in shown, shown
    assert queries("tavily", tavily) == [KEYWORDS]
    assert KEY not in shown
