"""What the page says before anybody has asked, and what it says of two answers to one question."""

import re
from collections.abc import Iterable, Mapping
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
_ASKS = re.compile(r"(?:how to|what (?:is|are)|who (?:is|are)|where|when|why) ", re.IGNORECASE)


def examples(stored: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return questions made from headings of an index, each from another file if there are several.

    `stored` are the metadata of its chunks. Headings that ask something come first.
    """
    found: set[tuple[int, str, str]] = set()
    for metadata in stored:
        heading = without_markup(str(metadata.get("section") or "").rpartition(" > ")[2]).strip()
        if len(heading.split()) in _WORDS and heading[0].isalpha():
            asks = heading.endswith("?") or bool(_ASKS.match(heading))
            plain = heading[1:] == heading[1:].lower()  # Else another capital says it is a name.
            topic = heading[0].lower() + heading[1:] if plain else heading
            question = heading.rstrip("?") + "?" if asks else f"What is said about {topic}?"
            found.add((not asks, str(metadata["source"]), question))
    best_of_files = {file: question for _, file, question in sorted(found, reverse=True)}
    first = [question for _, _, question in sorted(found) if question in best_of_files.values()]
    return list(dict.fromkeys(first + [question for _, _, question in sorted(found)]))[
        :MOST_EXAMPLES
    ]


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


class _Strips(TypedDict):
    strips: list[Strip]


class _States(TypedDict):
    plain: _Strips
    corrected: _Strips


_STATES: Final = TypeAdapter(_States)


async def comparison(request: Request) -> Response:
    """Return the strips that correction dropped, shortened and added, as `crag ask --compare`."""
    states = _STATES.validate_json(await request.body())
    return JSONResponse(compare(states["plain"], states["corrected"])._asdict())


ROUTES = [Route("/api/about", about), Route("/api/compare", comparison, methods=["POST"])]
