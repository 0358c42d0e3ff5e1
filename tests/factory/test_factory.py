"""Which web search the environment chooses, and what `crag doctor` says of it."""

import re
from pathlib import Path

import pytest

from crag.errors import CragError
from crag.evaluators import ReaderAttributor, ReaderEvaluator
from crag.factory.doctor import examine
from crag.factory.parts import choose_attributor, choose_parts
from crag.factory.status import PartStatus
from crag.factory.web import choose_reader, choose_searcher, examine_web
from crag.parts import PageReader, Passage
from crag.runtime.environment import Environment
from crag.testing import FakeChatModel, FakeEvaluator


@pytest.fixture(autouse=True)
def _no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # A .env file of whoever runs the tests is not read.
    (tmp_path / "own_search.py").write_text("NUMBER = 7\n\n\ndef archive(query, limit): ...\n")
    monkeypatch.syspath_prepend(tmp_path)


def environment(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Environment:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Environment()


TAVILY = "TavilySearcher('https://api.tavily.com')"
SEARXNG = "SearxngSearcher('http://localhost:8888/search')"
WIKIPEDIA = "WikipediaSearcher('https://en.wikipedia.org/w/api.php')"
KEY = {"TAVILY_API_KEY": "tvly-secret"}
SERVER = {"SEARXNG_URL": "http://localhost:8888"}
CHOICES = pytest.mark.parametrize(
    ("variables", "expected", "why"),
    [
        (KEY, TAVILY, "TAVILY_API_KEY"),
        (KEY | SERVER, TAVILY, "TAVILY_API_KEY"),
        (SERVER, SEARXNG, "SEARXNG_URL"),
        ({"CRAG_SEARXNG_URL": "http://localhost:8888/"}, SEARXNG, "SEARXNG_URL"),
        (KEY | SERVER | {"CRAG_SEARCH": "searxng"}, SEARXNG, "CRAG_SEARCH"),
        (KEY | {"CRAG_SEARCH": " Wikipedia "}, WIKIPEDIA, "CRAG_SEARCH"),
        (
            {"CRAG_SEARCH": "wikipedia", "CRAG_WIKIPEDIA_LANGUAGE": "de"},
            "WikipediaSearcher('https://de.wikipedia.org/w/api.php')",
            "CRAG_SEARCH",
        ),
        (
            {"CRAG_SEARCH": "wikipedia", "CRAG_WIKIPEDIA_URL": "http://127.0.0.1:1"},
            "WikipediaSearcher('http://127.0.0.1:1/w/api.php')",
            "CRAG_SEARCH",
        ),
        (
            KEY | {"TAVILY_BASE_URL": "http://127.0.0.1:1"},
            "TavilySearcher('http://127.0.0.1:1')",
            "TAVILY_API_KEY",
        ),
        ({}, "None", "nothing is configured"),
        ({"TAVILY_BASE_URL": "http://127.0.0.1:1"}, "None", "nothing is configured"),
        ({"CRAG_SEARCH": "own_search:archive"}, "own_search:archive", "CRAG_SEARCH"),
        (KEY | SERVER | {"CRAG_SEARCH": "none"}, "None", "CRAG_SEARCH=none"),
    ],
)


@CHOICES
def test_what_is_configured_chooses_the_service(
    variables: dict[str, str], expected: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = environment(monkeypatch, **variables)
    assert repr(choose_searcher(found)) == expected
    told = choice(found, "web search")
    chosen = expected != "None"
    assert (told.state, told.in_use) == (("ready", expected) if chosen else ("missing", "none"))
    assert told.why == why
    assert choice(found, "pages").state == ("ready" if chosen else "missing")


WRONG = pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"CRAG_SEARCH": "google"},
            "'CRAG_SEARCH' cannot be 'google': allowed are tavily, wikipedia, searxng, none and",
        ),
        ({"CRAG_SEARCH": "own_search:missing"}, "it cannot be imported: "),
        ({"CRAG_SEARCH": "own_search:NUMBER"}, "it must be a function search(query, limit)"),
        ({"CRAG_SEARCH": "tavily"}, "set TAVILY_API_KEY"),
        ({"CRAG_SEARCH": "searxng"}, "set SEARXNG_URL"),
        ({"SEARXNG_URL": "localhost:8888"}, "SEARXNG_URL must be an address"),
        (KEY | {"TAVILY_BASE_URL": "x"}, "TAVILY_BASE_URL must be an address"),
        (
            {"CRAG_SEARCH": "wikipedia", "CRAG_WIKIPEDIA_LANGUAGE": "English"},
            "CRAG_WIKIPEDIA_LANGUAGE cannot be 'English'",
        ),
    ],
)


@WRONG
def test_what_is_configured_wrongly_is_refused_with_the_fix(
    variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = environment(monkeypatch, **variables)
    with pytest.raises(CragError) as caught:
        choose_searcher(found)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    told = choice(found, "web search")
    assert (told.state, told.todo) == ("broken", str(caught.value))
    assert choice(found, "pages").state == "missing"


def choice(found: Environment, part: str) -> PartStatus:
    return next(choice for choice in examine_web(found) if choice.part == part)


def test_doctor_tells_of_the_web_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = environment(monkeypatch, **SERVER)
    assert examine(found, use=False)[-3:-1] == examine_web(found)


def test_doctor_says_whose_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    told = choice(environment(monkeypatch, **KEY), "pages")
    assert (told.in_use, told.why) == ("HTTP", "default")
    told = choice(environment(monkeypatch, CRAG_ALLOW_LOOPBACK="true"), "pages")
    assert told.why == "pages of this machine too: CRAG_ALLOW_LOOPBACK"


def test_pages_are_read_only_where_there_is_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    without = choose_parts(environment(monkeypatch))
    assert (without.searcher, without.reader) == (None, None)
    given = choose_parts(environment(monkeypatch, **KEY))
    assert isinstance(given.reader, PageReader)
    assert repr(given.searcher) == TAVILY


def test_choosing_a_reader_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_reader(environment(monkeypatch)), PageReader)
    assert [path.name for path in tmp_path.iterdir()] == ["own_search.py"]


KEYED = {"OPENAI_API_KEY": "sk-a-secret-key"}
REFLECTING = pytest.mark.parametrize(
    ("variables", "expected", "why"),
    [
        ({}, "EmbeddedReflection", "embedded"),
        (KEYED, "PromptedReflection", "prompted"),
        (
            {"CRAG_REFLECTION": "Embedded", "OPENAI_API_KEY": "sk-a"},
            "EmbeddedReflection",
            "embedded",
        ),
        (
            {"CRAG_REFLECTION": "server", "CRAG_REFLECTION_URL": "http://localhost:8000/v1"},
            "CompletionsReflection",
            "CompletionsReflection('selfrag/selfrag_llama2_7b', ",
        ),
        (
            {"CRAG_REFLECTION": "./model", "CRAG_REFLECTION_DTYPE": "bfloat16"},
            "TransformersReflection",
            "TransformersReflection(",
        ),
    ],
)


@REFLECTING
def test_who_reflects(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str, why: str
) -> None:
    chosen = environment(monkeypatch, **variables)
    backend = choose_parts(chosen).reflection
    assert type(backend).__name__ == expected
    told = next(choice for choice in examine(chosen, use=False) if choice.part == "reflection")
    assert told.state == "ready"
    assert told.in_use.startswith(why)
    assert bool(told.todo) == (expected in ("EmbeddedReflection", "PromptedReflection"))


@pytest.mark.parametrize(
    ("variables", "match"),
    [
        ({"CRAG_REFLECTION": "prompted"}, "set OPENAI_API_KEY"),
        ({"CRAG_REFLECTION": "server"}, "set CRAG_REFLECTION_URL"),
        ({"CRAG_REFLECTION": "x/y", "CRAG_REFLECTION_DTYPE": "int4"}, "float32, bfloat16, float16"),
        ({"CRAG_REFLECTION": "x/y", "CRAG_REFLECTION_TOKENS": "some"}, "required and optional"),
    ],
)
def test_reflection_that_lacks_something(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], match: str
) -> None:
    chosen = environment(monkeypatch, **variables)
    with pytest.raises(CragError, match=match):
        choose_parts(chosen)
    told = next(choice for choice in examine(chosen, use=False) if choice.part == "reflection")
    assert told.state == "broken"
    assert re.search(match, told.todo)


def test_the_reader_attributes_the_sentences_of_a_model_whoever_grades() -> None:
    model, other = FakeChatModel(), FakeEvaluator()
    reader = ReaderEvaluator.packaged()
    assert choose_attributor(other, None) is None
    assert isinstance(choose_attributor(other, model), ReaderAttributor)
    own = choose_attributor(reader, model)
    assert own is not None
    passages = [Passage("Ada", "Ada Lovelace wrote the first program."), Passage("", "It rained.")]
    said = ["The first program was written by Ada Lovelace.", "Bob burnt Moscow in 1812."]
    supported = [
        [one >= own.threshold for one in row] for row in own.support("Who?", said, passages)
    ]
    assert supported == [[True, False], [False, False]]
