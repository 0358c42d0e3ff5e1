"""`crag.toml`: what it says, what overrules it, and what it may not hold."""

from pathlib import Path

import pytest

from crag.errors import ConfigurationError
from crag.runtime.environment import Environment


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, path: str = "crag.toml") -> Path:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place.resolve()


def test_the_file_of_this_folder_names_the_parts(tmp_path: Path) -> None:
    write('index = "kept"\nmodel = "ollama:llama3.2"\nevaluator = "cosine"\nallow_loopback = true')
    found = Environment()
    assert (found.index, found.model) == (str(tmp_path / "kept"), "ollama:llama3.2")
    assert (found.evaluator, found.allow_loopback) == ("cosine", True)
    assert found.config == tmp_path / "crag.toml"


def test_no_file_says_nothing() -> None:
    assert Environment().config is None


def test_the_environment_overrules_env_which_overrules_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write('model = "file"\nevaluator = "cosine"\nsearch = "wikipedia"\nindex = "kept"')
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
    write('index = "qdrant://./kept"', "conf/crag.toml")
    assert Environment().index == f"qdrant://{tmp_path / 'conf' / 'kept'}"


def test_a_name_is_no_folder_that_is_called_so(tmp_path: Path) -> None:
    for name in ("default", "server", "cosine"):
        (tmp_path / name).mkdir()
    write('evaluator = "default"\nreranker = "cosine"\nreflection = "server"')
    found = Environment()
    names = ("default", "cosine", "server")
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
        ('evalutor = "cosine"', r"unknown key 'evalutor'; did you mean evaluator"),
        ('embeddings = "openai:small"', r"did you mean embedding_model\?"),
        ('zebra = "x"', "known are index, evaluator"),
        ("upper = 0.5", "upper is a setting of a run, .*write --set upper=…"),
        ('[model]\nname = "x"', "model cannot be .*write a text in quotes"),
        ("model = 7", "model cannot be 7: write a text in quotes"),
        ("model = true", "model cannot be True: write a text in quotes"),
        ('allow_loopback = "yes"', "cannot be 'yes': write true or false"),
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
    with pytest.raises(ConfigurationError, match=words) as caught:
        Environment()
    assert not {"abc", "hush", "sk-abcdefghijklm"} & set(
        str(caught.value).replace(":", " ").split()
    )
    assert "hush" not in str(caught.value)


def test_a_named_file_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_CONFIG", "nowhere.toml")
    with pytest.raises(ConfigurationError, match=r"cannot be read .*CRAG_CONFIG names it"):
        Environment()
