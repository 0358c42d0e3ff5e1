"""PostgreSQL, and a server of `crag.server` in the process of the test, with a graph of its own."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from langgraph_sdk.client import LangGraphClient
from typing_extensions import TypedDict

from crag.page.rules import Rules
from crag.server.app import create
from crag.server.database import Database
from crag.server.runs import Runs
from crag.server.settings import ServerSettings
from crag.telemetry import Instruments
from tests.postgres import postgres
from tests.repeating import times

Serving = Callable[..., AbstractAsyncContextManager[LangGraphClient]]


class State(TypedDict, total=False):
    question: str
    answer: str


def ask(state: State) -> State:
    """Ask a human where the question says so."""
    if "?" in state["question"]:
        return {"answer": str(interrupt({"asked": state["question"]}))}
    return {"answer": state["question"].upper()}


def graph_that_answers(nodes: Any = ask) -> Any:
    """Return a graph of one node."""
    built = StateGraph(State)
    built.add_node("ask", nodes)
    built.add_edge(START, "ask")
    return built.compile()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def database_url(postgres_url: str) -> str:
    """Return the URL of a database without runs; one that is new would take a second to make."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        made = connection.execute("SELECT to_regclass('crag_threads')").fetchone()
        if made and made[0]:
            connection.execute("TRUNCATE crag_threads CASCADE")
    return postgres_url


@pytest.fixture
def settings(database_url: str) -> Callable[..., ServerSettings]:
    def make(**changed: Any) -> ServerSettings:
        values = {"database": database_url, "connections": 4, "lease_seconds": 4.0}
        return ServerSettings.model_validate(values | changed)

    return make


@pytest.fixture
async def make_runs(
    settings: Callable[..., ServerSettings],
) -> AsyncIterator[Callable[..., Runs]]:
    async with Database(settings()).opened() as database:
        yield lambda rules=None, **limits: Runs(database, settings(**limits), rules or Rules())


@pytest.fixture
def serving(settings: Callable[..., ServerSettings]) -> Serving:
    """Serve a graph that answers in capitals, and asks a human about what ends with `?`."""

    @asynccontextmanager
    async def serve(
        nodes: Any = ask,
        rules: Rules | None = None,
        instruments: Instruments | None = None,
        graph: Any = None,
        **changed: Any,
    ) -> AsyncIterator[LangGraphClient]:
        graphs = {"crag": graph or graph_that_answers(nodes)}
        app = create(settings(**changed), graphs, rules or Rules(), instruments)
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        client = httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", timeout=times(20, 20, 900)
        )
        async with app.router.lifespan_context(app), client:
            yield LangGraphClient(client)

    return serve
