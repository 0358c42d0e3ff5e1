"""The commands of the guide on training Self-RAG, as they stand there, with a tiny base."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from crag.models.model_card import CARD
from crag.papers.loading.records import write_records
from crag.papers.self_rag.generator_data import DataRules
from crag.papers.self_rag.language_recipe import LanguageModelCard, LanguageRecipe
from tests.commands import CRAG, crag, variables
from tests.gguf_models import write_gguf
from tests.llama_server import serving_gguf
from tests.loopback import serving
from tests.papers.cli.test_reflect_data import reply
from tests.papers.self_rag.test_released_formats import CRITIC_ROWS, GENERATOR_ROWS
from tests.papers.studies.test_studies import PAIRS, RECORDS
from tests.reflection.backends.tiny_llama import byte_pair_llama
from tests.reflective import articles, tiny_base, written

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guide" / "train-self-rag.md"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
RECIPE = """
base = "base"
batch_size = 4
accumulation = 1
learning_rate = 3e-3
max_length = 500
steps = 3
"""


def commands(*, below: bool = False) -> list[list[str]]:
    """Return the commands that train a generator, or those below that use it."""
    before, _, after = GUIDE.read_text(encoding="utf-8").partition("## Serve the generator")
    lines = "".join(CONSOLE.findall(after if below else before)).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines]


def write_recipes(folder: Path) -> None:
    """Write the recipes that the guide names, for a base in the folder."""
    recipes = folder / "papers" / "recipes"
    recipes.mkdir(parents=True)
    for name in ("self_rag_small", "self_rag_7b"):
        (recipes / f"{name}.toml").write_text(f"[critic]{RECIPE}[generator]{RECIPE}")


@pytest.mark.nightly
def test_a_newcomer_gets_from_nothing_to_a_trained_model(tmp_path: Path) -> None:
    rows = articles(32)
    written(tmp_path / "squad_train.jsonl", rows[:24])
    written(tmp_path / "squad_dev.jsonl", rows[24:])
    (tmp_path / "texts").mkdir()
    for place, row in enumerate(rows[:20]):
        (tmp_path / "texts" / f"{place}.md").write_text(f"# {row['title']}\n\n{row['text']}\n")
    tiny_base(tmp_path / "base")
    write_recipes(tmp_path)
    (tmp_path / "critic_train.json").write_text(json.dumps(CRITIC_ROWS))
    held_out = [row | {"input": row["input"].replace("When", "Where")} for row in CRITIC_ROWS]
    (tmp_path / "critic_dev.json").write_text(json.dumps(held_out))
    written(tmp_path / "train.jsonl", GENERATOR_ROWS)
    ran: list[str] = []
    for words in commands():
        variables = dict(word.split("=", 1) for word in words[: words.index("crag")])
        arguments = words[words.index("crag") + 1 :]
        with serving(reply(reason="as it says", label="Relevant")) as server:
            if "--chat" in arguments:
                variables |= {"OPENAI_BASE_URL": f"{server.url}/v1", "CRAG_MODEL": "labeller"}
            done = crag(*arguments, folder=tmp_path, environment=variables)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        ran.append(" ".join(arguments[:2]))
    assert ran == [
        "reflect-data critic", "reflect-data critic", "train critic", "train critic",
        "index texts/",
        "reflect-data pairs", "reflect-data generator", "reflect-data pairs",
        "reflect-data generator", "reflect-data generator",
        "train generator", "ask QUESTION", "train generator",
    ]  # fmt: skip
    assert "[Continue to Use Evidence]" in (tmp_path / "longer.jsonl").read_text()
    for kind in ("critic", "self-rag", "critic-7b", "self-rag-7b"):
        card = LanguageModelCard.model_validate_json(
            (tmp_path / "models" / kind / CARD).read_bytes()
        )
        assert card.metrics["training"]["last_loss"] > 0


@pytest.mark.nightly
def test_the_commands_below_use_what_was_trained(tmp_path: Path) -> None:
    """All but llama.cpp's own server, for which its Python package serves, and several GPUs."""
    write_recipes(tmp_path)
    shutil.copytree(byte_pair_llama(), tmp_path / "base")
    config = tmp_path / "base" / "config.json"
    longer = json.loads(config.read_text()) | {"max_position_embeddings": 2048}
    config.write_text(json.dumps(longer))
    for name in ("tables", "recipes/tuned_prompts"):
        (tmp_path / "papers" / name).symlink_to(ROOT / "papers" / name)
    (tmp_path / "texts").mkdir()
    for place, row in enumerate(articles(8)):
        (tmp_path / "texts" / f"{place}.md").write_text(f"# {row['title']}\n\n{row['text']}\n")
    assert crag("index", "texts", "--index", "passages", folder=tmp_path).returncode == 0
    write_records(tmp_path / "records.jsonl", RECORDS)
    write_records(tmp_path / "pairs.jsonl", PAIRS)
    asked = {"id": 1, "question": "When was it built?", "answers": ["1700"], "s_wiki_title": "A"}
    written(tmp_path / "popqa_longtail_w_gs.jsonl", [
        asked | {"prop": "date", "s_pop": 5, "ctxs": [{"title": "A", "text": "It was in 1700."}]}
    ])  # fmt: skip
    (studies,) = (words for words in commands(below=True) if words[:2] == ["python", "-m"])
    subprocess.run(
        [sys.executable, *studies[1:]], cwd=tmp_path, env=variables({}), check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    shutil.copytree(tmp_path / "studies" / "full", tmp_path / "models" / "self-rag")
    ran: list[str] = []
    for words in commands(below=True):
        program = next(word for word in words if "=" not in word)
        given = dict(word.split("=", 1) for word in words[: words.index(program)])
        if program == "accelerate":
            assert words[words.index("--no_python") + 1 :] in commands()
        if program != "crag":
            continue
        arguments = words[words.index("crag") + 1 :]
        if arguments[0] == "ask":
            trained = tmp_path / "models" / "self-rag"
            with serving_gguf(write_gguf(trained, tmp_path / "self-rag.gguf")) as url:
                given |= {"CRAG_REFLECTION": "server", "CRAG_REFLECTION_URL": f"{url}/v1"}
                # Only a process that ends closes what the server keeps open.
                subprocess.run(
                    [CRAG, *arguments], cwd=tmp_path, env=variables(given), check=True,
                    stdout=subprocess.DEVNULL,
                )  # fmt: skip
        else:
            with ExitStack() as stack:
                if "OPENAI_BASE_URL" in given:
                    plain = write_gguf(tmp_path / given["CRAG_MODEL"], tmp_path / "plain.gguf")
                    given["OPENAI_BASE_URL"] = f"{stack.enter_context(serving_gguf(plain))}/v1"
                done = crag(*arguments, "--limit", "1", folder=tmp_path, environment=given)
            # A model of three steps never ends its reply, which counts as a row that failed.
            assert done.returncode < 2, f"{arguments}: {done.stderr}"
        ran.append(" ".join(arguments[:2]))
    bench = "bench papers/tables/reflection.toml:reflection_popqa"
    assert ran == ["ask QUESTION", bench, bench]
    for name, row in (("full", "self-rag"), ("no_retriever", "no retriever")):
        report = (tmp_path / "runs" / name / "report.md").read_text().lower()
        assert row in report


TABLE = re.compile(r"<!-- training choices -->\n(.*?)<!-- end of training choices -->", re.DOTALL)


def test_every_option_of_the_table_exists() -> None:
    (table,) = TABLE.findall(GUIDE.read_text(encoding="utf-8"))
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    assert len(rows) > 10
    settings = {**LanguageRecipe.model_fields, **DataRules.model_fields}
    helped = {
        option
        for words in (("reflect-data", "critic"), ("reflect-data", "pairs"))
        for option in re.findall(r"--[a-z-]+", crag(*words, "--help").stdout)
    }
    for row in rows:
        assert len(row) == 5, row
        options = re.findall(r"`([^`]+)`", row[4])
        assert options or "no option" in row[4], row
        for option in options:
            name, _, value = option.partition("=")
            assert name in (helped if name.startswith("--") else settings), option
            for form in (LanguageRecipe, DataRules):
                if value and name in form.model_fields:
                    form.model_validate({name: value})
