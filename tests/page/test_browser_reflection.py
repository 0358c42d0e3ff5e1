"""The critiques of a generator with reflection tokens, behind llama.cpp's server, in the page."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.gguf_models import write_gguf
from tests.llama_server import serving_gguf
from tests.page.asking import ask, open_everything, phase
from tests.page.serving import serving_guide
from tests.reflection.backends.tiny_llama import COLOURS, byte_pair_llama, passage

pytestmark = pytest.mark.browser
Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve what is known of four things, with the generator that learned to reflect on them."""
    folder = tmp_path_factory.mktemp("colours")
    model = write_gguf(byte_pair_llama(), folder / "tiny.gguf")
    things = folder / "things.jsonl"
    things.write_text("".join(json.dumps(passage(thing)._asdict()) + "\n" for thing in COLOURS))
    with (
        serving_gguf(model) as url,
        serving_guide(
            folder,
            documents=things,
            CRAG_REFLECTION="server",
            CRAG_REFLECTION_URL=f"{url}/v1",
            CRAG_REFLECTION_MODEL="tiny",
        ) as page,
    ):
        yield page


def test_self_rag_shows_what_the_generator_thought_of_each_document(
    visit: Visit, colours: str
) -> None:
    page = visit(f"{colours}&graph=self_rag")
    ask(page, "What colour is the lantern?")
    assert phase(page) == "done"
    assert page.inner_text("#answer .text").startswith("The lantern is green")
    chosen = critiques(page).locator("tr.chosen").first.locator("td")
    assert chosen.nth(2).inner_text() == "Lantern"
    assert float(chosen.nth(4).inner_text()) > 0.5  # Relevance.
    assert float(chosen.nth(5).inner_text()) > 0.5  # Support.


def test_self_crag_shows_what_it_thought_of_the_corrected_knowledge(
    visit: Visit, colours: str
) -> None:
    page = visit(f"{colours}&graph=self_crag")
    ask(page, "What colour is the lantern?")
    assert phase(page) == "done"
    assert critiques(page).locator("tr.chosen").count() >= 1
    assert "The lantern is green" in page.inner_text("#critiques")  # What it was shown.


def critiques(page: Any) -> Any:
    """Return the table of what a generator wrote itself, and no other model in its place."""
    open_everything(page)
    assert page.locator("#critiques .approximation").count() == 0
    return page.locator("#critiques table")
