"""Variables, `.env` and `crag.toml`: what they say, what overrules what, and what is refused."""

from pathlib import Path

import pytest

from crag.errors import DataError, SettingsError
from crag.factory.embeddings import choose_limits
from crag.runtime.environment import Environment


@pytest.fixture(autouse=True)
def _no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # A .env file of whoever runs the tests is not read.


def test_nothing_is_configured_by_default() -> None:
    found = Environment()
    assert (found.tavily_base_url, found.searxng_url, found.wikipedia_url) == (None, None, None)
    assert (found.wikipedia_language, found.contact) == ("en", "")
    assert found.allow_loopback is False


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("TAVILY_BASE_URL", "tavily_base_url"),
        ("CRAG_TAVILY_URL", "tavily_base_url"),
        ("SEARXNG_URL", "searxng_url"),
        ("CRAG_SEARXNG_URL", "searxng_url"),
        ("CRAG_WIKIPEDIA_URL", "wikipedia_url"),
        ("CRAG_WIKIPEDIA_LANGUAGE", "wikipedia_language"),
        ("CRAG_CONTACT", "contact"),
        ("CRAG_SEARCH", "search"),
    ],
)
def test_each_variable_has_its_field(
    variable: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "value")
    assert getattr(Environment(), field) == "value"


def test_a_file_named_env_counts_too() -> None:
    Path(".env").write_text("SEARXNG_URL=http://localhost:8888\nCRAG_PROMPTS=kept/prompts\n")
    found = Environment()
    assert found.searxng_url == "http://localhost:8888"
    assert found.prompts == Path("kept/prompts")


def test_the_home_folder_is_known_where_no_shell_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Path(".env").write_text(
        "CRAG_INDEX=~/kept\nCRAG_PROMPTS=~/prompts\nCRAG_EMBEDDING_MODEL=~/encoder\n"
        "CRAG_EVALUATOR=grader~1\n"
    )
    found = Environment()
    assert (found.index, found.prompts) == (str(tmp_path / "kept"), tmp_path / "prompts")
    assert found.embedding_model == str(tmp_path / "encoder")
    assert found.evaluator == "grader~1"


def test_another_process_is_told_paths_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_INDEX", "mine:shelf://./kept")
    monkeypatch.setenv("CRAG_PROMPTS", "mine")
    told = dict(Environment().shared())
    assert told["index"] == f"mine:shelf://{tmp_path / 'kept'}"
    assert (told["evaluator"], told["prompts"]) == ("default", tmp_path / "mine")


def test_a_folder_in_capitals_is_no_name_of_an_evaluator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("Reader", "reader", "Embedded"):
        (tmp_path / folder).mkdir(exist_ok=True)
    monkeypatch.setenv("CRAG_EVALUATOR", "Reader")
    monkeypatch.setenv("CRAG_RERANKER", "reader")
    monkeypatch.setenv("CRAG_REFLECTION", "Embedded")
    told = dict(Environment().shared())
    assert told["evaluator"] == str(tmp_path / "Reader")
    assert (told["reranker"], told["reflection"]) == ("reader", "Embedded")


def test_a_file_named_env_that_is_not_utf8_is_named_with_its_line() -> None:
    Path(".env").write_bytes(b"CRAG_SEARCH=none\nCRAG_INDEX=caf\xe9\n")
    with pytest.raises(DataError, match=r"^\.env: line 2 is not UTF-8"):
        Environment()


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("CRAG_ALLOW_LOOPBACK", "perhaps", "valid boolean"),
        ("CRAG_READ_SECONDS", "0", "greater than 0"),
        ("CRAG_READ_SECONDS", "inf", "86400"),
        ("CRAG_READ_SECONDS", "soon", "valid number"),
        ("CRAG_READ_MEGABYTES", "199", "200"),
        ("CRAG_READ_MEGABYTES", "1e9", "valid integer"),
        ("CRAG_FRAMING", "bold", "'chat' or 'raw'"),
        ("CRAG_TELEMETRY", "yes", "'on', 'off' or 'auto'"),
        ("CRAG_REFLECTION_DTYPE", "int4", "'auto', 'float32', 'bfloat16' or 'float16'"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_what_is(
    variable: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        Environment()
    assert str(caught.value).startswith(f"setting {variable!r} cannot be {value!r}: ")
    assert allowed in str(caught.value)


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-secret")
    assert "secret" not in repr(Environment())


def test_what_reading_a_file_may_take_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_READ_SECONDS", "300")
    monkeypatch.setenv("CRAG_READ_MEGABYTES", "4000")
    assert choose_limits(Environment()) == (300.0, 4000)


def write(text: str, path: str = "crag.toml") -> Path:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place.resolve()


def test_the_file_of_this_folder_names_the_parts(tmp_path: Path) -> None:
    write('index = "kept"\nmodel = "ollama:llama3.2"\nevaluator = "chat"\nallow_loopback = true')
    found = Environment()
    assert (found.index, found.model) == (str(tmp_path / "kept"), "ollama:llama3.2")
    assert (found.evaluator, found.allow_loopback) == ("chat", True)
    assert found.config == tmp_path / "crag.toml"


def test_no_file_says_nothing() -> None:
    assert Environment().config is None


def test_the_environment_overrules_env_which_overrules_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write('model = "file"\nevaluator = "chat"\nsearch = "wikipedia"\nindex = "kept"')
    write("CRAG_MODEL=dotenv\nCRAG_EVALUATOR=reader\n", ".env")
    monkeypatch.setenv("CRAG_MODEL", "environment")
    found = Environment()
    assert (found.model, found.evaluator, found.search) == ("environment", "reader", "wikipedia")


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_it_overrules_by_each_of_its_names(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write('openai_base_url = "http://file/v1"')
    assert Environment().openai_base_url == "http://file/v1"
    monkeypatch.setenv(variable, "http://environment/v1")
    assert Environment().openai_base_url == "http://environment/v1"


@pytest.mark.parametrize("where", ["environment", ".env"])
def test_another_file_is_named(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write('model = "wrong"')
    write('model = "right"\nprompts = "mine"', "conf/office.toml")
    if where == ".env":
        write("CRAG_CONFIG=conf/office.toml", ".env")
    else:
        monkeypatch.setenv("CRAG_CONFIG", "conf/office.toml")
    found = Environment()
    assert (found.model, found.prompts) == ("right", tmp_path / "conf" / "mine")


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf" / "grader").mkdir(parents=True)
    write(
        'index = "postgresql://host/name"\nevaluator = "grader"\nembedding_model = "openai:small"\n'
        'prompts = "/var/prompts"',
        "conf/crag.toml",
    )
    monkeypatch.setenv("CRAG_CONFIG", "conf/crag.toml")
    found = Environment()
    assert found.index == "postgresql://host/name"
    assert found.evaluator == str(tmp_path / "conf" / "grader")
    assert found.embedding_model == "openai:small"
    assert found.prompts == Path("/var/prompts")
    write('index = "mine:shelf://./kept"', "conf/crag.toml")
    assert Environment().index == f"mine:shelf://{tmp_path / 'conf' / 'kept'}"


def test_a_name_is_no_folder_that_is_called_so(tmp_path: Path) -> None:
    for name in ("default", "server", "chat"):
        (tmp_path / name).mkdir()
    write('evaluator = "default"\nreranker = "chat"\nreflection = "server"')
    found = Environment()
    names = ("default", "chat", "server")
    assert (found.evaluator, found.reranker, found.reflection) == names
    told = dict(found.shared())
    assert (told["evaluator"], told["reranker"], told["reflection"]) == names


def test_an_empty_value_says_nothing() -> None:
    write('index = ""\nevaluator = ""\nmodel = ""\nprompts = ""\nreflection = ""\nsearch = ""')
    found = Environment()
    assert (found.index, found.evaluator) == (".crag/index", "default")
    assert (found.model, found.prompts, found.reflection, found.search) == (None,) * 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('evalutor = "chat"', r"unknown key 'evalutor'; did you mean evaluator"),
        ('embeddings = "openai:small"', r"did you mean embedding_model\?"),
        ('zebra = "x"', "known are index, evaluator"),
        ("model = ", "it is no TOML"),
        ('config = "other.toml"', "unknown key 'config'"),
        ('OPENAI_API_KEY = "abc"', "OPENAI_API_KEY holds a secret.*set OPENAI_API_KEY in the env"),
        ('openai_api_key = "abc"', "set OPENAI_API_KEY in the environment or in .env"),
        ('tavily_api_key = "abc"', "set TAVILY_API_KEY"),
        ('anthropic_api_key = "abc"', "set ANTHROPIC_API_KEY"),
        ('model = "sk-abcdefghijklm"', "model holds a secret.*set CRAG_MODEL"),
        ('index = "postgresql://me:hush@host/name"', "index holds a secret.*set CRAG_INDEX"),
    ],
)
def test_what_it_may_not_hold(text: str, words: str) -> None:
    write(text)
    with pytest.raises(DataError, match=words) as caught:
        Environment()
    assert not {"abc", "hush", "sk-abcdefghijklm"} & set(
        str(caught.value).replace(":", " ").split()
    )
    assert "hush" not in str(caught.value)


def test_a_named_file_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_CONFIG", "nowhere.toml")
    with pytest.raises(DataError, match=r"cannot be read\. CRAG_CONFIG names it"):
        Environment()


def test_a_value_of_another_type_is_refused_as_in_the_environment() -> None:
    write("model = 7")
    with pytest.raises(
        SettingsError, match="'CRAG_MODEL' cannot be 7: Input should be a valid string"
    ):
        Environment()
