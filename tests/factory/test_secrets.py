"""No password and no key of an address is shown, whatever variable holds it."""

from itertools import product

import pytest
from pydantic import SecretStr

from crag.cli.doctor import examine
from crag.errors import CragError
from crag.events import describe
from crag.factory.parts import choose_model, choose_searcher
from crag.runtime.environment import Environment

SECRETS = ("passw0rd", "hunter2", "s3cr3t", "topsecret")
PLACES = (
    "http://hunter2:passw0rd@127.0.0.1:9/v1?key=s3cr3t&topsecret",
    "postgresql://hunter2:passw0rd@127.0.0.1:9/base?sslpassword=s3cr3t",
    "qdrant+http://hunter2:passw0rd@127.0.0.1:9/things?api_key=s3cr3t",
    "http://hunter2:pass/w0rd@passw0rd@127.0.0.1:9/?s3cr3t",
)
ADDRESSES = [
    name
    for name, field in Environment.model_fields.items()
    if str in getattr(field.annotation, "__args__", (field.annotation,)) and name != "contact"
]
"""Every variable that takes a text: it may be an address, on purpose or by mistake."""


def hides(text: str) -> bool:
    return not any(secret in text for secret in (*SECRETS, "w0rd"))


def environment(name: str, place: str) -> Environment:
    base = {"model": "a", "openai_base_url": "http://127.0.0.1:9/v1", "search": "searxng"}
    named = "none" if name == "search" else "searxng"
    values = base | {"searxng_url": "http://127.0.0.1:9", "search": named, name: place}
    if name in {"tavily_base_url", "wikipedia_url"}:
        values |= {"search": name.partition("_")[0], "tavily_api_key": SecretStr("tvly-nothing")}
    if name.startswith("reflection"):
        values = {"reflection": "server"} | values
    return Environment().model_copy(update=values)


CHOOSING = (choose_searcher, choose_model)


@pytest.mark.parametrize(
    ("name", "place"),
    [*product(ADDRESSES, PLACES[:1]), *(("index", place) for place in PLACES[1:])],
)
def test_no_secret_of_an_address_is_shown(name: str, place: str) -> None:
    asked = environment(name, place)
    told = [text for status in examine(asked) for text in status]
    for choose in CHOOSING:
        try:
            choose(asked)
        except CragError as error:
            told += [str(error), describe(error), describe(str(error))]
    assert [text for text in told if not hides(text)] == []
