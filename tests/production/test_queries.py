"""The files of statements: each is run by the module of its name, and PostgreSQL can plan it."""

import re
from collections.abc import Callable
from importlib.resources import files
from uuid import uuid4

import pytest
from psycopg.sql import SQL, Identifier

from crag.server.database import queries
from crag.server.runs import Runs

PACKAGE = files("crag.server")
FILES = PACKAGE.joinpath("queries")
MODULES = sorted(file.name.removesuffix(".sql") for file in FILES.iterdir())
PLANNED = [
    (module, name) for module in MODULES for name in queries(module) if name != "make_versions"
]
"""All but one, which makes a table: that has no plan, and is run wherever a server starts."""
VALUES = {
    **dict.fromkeys(("thread_id", "run_id", "worker", "new"), uuid4()),
    **dict.fromkeys(("owner", "assistant_id", "graph_id", "request", "channel", "error"), "text"),
    **dict.fromkeys(("status", "strategy", "cancel"), "interrupt"),
    **dict.fromkeys(("seconds", "lease", "minute", "statement_seconds", "lease_seconds"), 1.5),
    **dict.fromkeys(("limit", "offset", "place", "days", "most", "attempt", "version"), 1),
    **{name: ["text"] for name in ("names", "events", "data", "threads")},
    **{name: [uuid4()] for name in ("runs", "ids")},
    "attempts": [1],
    "metadata": {},
    "temporary": False,
}
"""A value for each parameter: what PostgreSQL plans depends on their types alone."""


@pytest.mark.parametrize("module", MODULES)
def test_each_statement_is_run_and_each_that_is_run_is_there(module: str) -> None:
    code = PACKAGE.joinpath(f"{module}.py").read_text("utf-8")
    assert f'_SQL = queries("{module}")' in code
    assert set(re.findall(r'_SQL\["(\w+)"\]', code)) == set(queries(module))


def test_no_name_is_given_twice_in_a_file() -> None:
    for module in MODULES:
        text = FILES.joinpath(f"{module}.sql").read_text("utf-8")
        assert text.count("-- name: ") == len(queries(module))


@pytest.mark.parametrize(("module", "name"), PLANNED)
async def test_postgresql_can_plan_it(
    make_runs: Callable[..., Runs], module: str, name: str
) -> None:
    query = queries(module)[name]
    filled = SQL(query).format(by=Identifier("created_at"), order=SQL("ASC"))
    await make_runs().database.rows(SQL("EXPLAIN ") + filled, **VALUES)
