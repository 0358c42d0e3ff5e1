"""What the page says before anybody has asked, and what it says of two answers to one question."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from crag.correction.comparison import compare
from crag.factory.parts import choose_searcher
from crag.generation.chat import DEFAULT_MODEL
from crag.graph_registry import OFFERED
from crag.runtime.environment import Environment
from crag.state import Strip
from crag.text.markup import without_markup

MOST_EXAMPLES = 3
_WORDS = range(2, 9)
"""How many words a heading has that says what it is about."""
_QUESTION = re.compile(r"(?:what|who) (?:is|are) (?:an?|the) ", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:how|what|where|when|why|which|who) ", re.IGNORECASE)


def examples(stored: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return questions made from headings of an index, each from another file if there are several.

    `stored` are the metadata of its chunks. Headings that ask something come first.
    """
    found = sorted(set(_questions(stored)))
    best_of_files: dict[str, str] = {}
    for _, file, question in found:
        best_of_files.setdefault(file, question)
    chosen = [*best_of_files.values(), *(question for _, _, question in found)]
    return list(dict.fromkeys(chosen))[:MOST_EXAMPLES]


def _questions(stored: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, str, str]]:
    """Yield the rank, the file and the question of each heading that can be asked for."""
    for metadata in stored:
        heading = without_markup(str(metadata.get("section") or "").rpartition(" > ")[2]).strip()
        if len(heading.split()) not in _WORDS or not heading[0].isalpha():
            continue
        if heading.endswith("?") and _CLAUSE.match(heading):
            rank, question = 0, heading
        elif _QUESTION.match(heading):
            rank, question = 0, f"{heading}?"
        elif _CLAUSE.match(heading):
            rank, question = 1, f"Explain {_uncapitalized(heading)}."
        else:
            rank, question = 2, f"What about {_uncapitalized(heading).rstrip('?')}?"
        yield rank, str(metadata["source"]), question


def _uncapitalized(heading: str) -> str:
    """Write the first word small, unless another capital says that it is a name."""
    plain = heading[1:] == heading[1:].lower()
    return heading[0].lower() + heading[1:] if plain else heading


def connected(environment: Environment) -> dict[str, str | None]:
    """Return the name of the model that writes the answers and of the web search, None without."""
    model = environment.model or (DEFAULT_MODEL if environment.openai_api_key else None)
    searcher = choose_searcher(environment)
    return {
        "model": model and re.split(r"[/\\]", model)[-1],
        "web": type(searcher).__name__.removesuffix("Searcher") if searcher else None,
    }


async def about(request: Request) -> Response:
    """Return the names of the graphs, and what is connected."""
    graphs = {name: entry.title for name, entry in OFFERED.items()}
    return JSONResponse({"graphs": graphs, **connected(request.app.state.environment)})


class _Plain(TypedDict):
    internal: list[Strip]


class _Corrected(_Plain):
    external: list[Strip]


class _States(TypedDict):
    """What plain retrieval and correction came to, after the same question."""

    plain: _Plain
    corrected: _Corrected


_STATES: Final = TypeAdapter(_States)


async def comparison(request: Request) -> Response:
    """Return the strips that correction dropped, shortened and added, as `crag ask --compare`."""
    states = _STATES.validate_json(await request.body())
    return JSONResponse(compare(states["plain"], states["corrected"])._asdict())


ROUTES = [Route("/api/about", about), Route("/api/compare", comparison, methods=["POST"])]
