"""Critic and generator are trained: tokens, loss, resuming, what is saved, several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crag.errors import (
    CragError,
)
from crag.models.model_card import CARD
from crag.papers.cli import app
from crag.papers.files import read_records, write_records
from crag.papers.self_rag.critic import case_ids, critic_texts, load_critic
from crag.papers.self_rag.critique_cases import LabelledCase
from crag.papers.self_rag.generator_data import Pair, ReflectiveRecord
from crag.papers.self_rag.language_model import (
    IGNORED,
    LanguageRecipe,
    language_recipe,
    load_base,
)
from crag.papers.self_rag.reflective_text import reflective_text
from crag.papers.training import WORK
from crag.parts import Continuation, Passage, Prefix, SegmentLimits
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection_tokens import FULLY, IRRELEVANT, NO_SUPPORT, PAD, RELEVANT, TOKENS, token_ids
from tests.trained import articles, tiny_base, written

runner = CliRunner()
CASES = [
    LabelledCase(
        kind="relevance",
        instruction=f"When was the kettle of Peru built? {number}",
        evidence="It was built in 1700." if number % 2 else "Rain fell on the river.",
        label=RELEVANT if number % 2 else IRRELEVANT,
        group=f"article {number // 2}",
    )
    for number in range(24)
]


@pytest.fixture(autouse=True, scope="module")
def _one_core() -> Any:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # On so small a model several would only wait for each other.
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_base(tmp_path_factory.mktemp("base"))


def recipe(base: Path, **changes: Any) -> LanguageRecipe:
    values = {
        "base": str(base), "batch_size": 4, "accumulation": 2, "epochs": 2, "max_length": 192,
        "learning_rate": 3e-3, "save_steps": 2,
    }  # fmt: skip
    return LanguageRecipe.model_validate(values | changes)


def test_tokens_are_added_as_ids_of_their_own_and_begin_as_documented(base: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plain = AutoModelForCausalLM.from_pretrained(base).get_input_embeddings().weight
    model, tokenizer, added = load_base(recipe(base))
    numbers = token_ids(tokenizer)
    assert [numbers[token] for token in TOKENS] == added[:-1]
    assert added[-1] == tokenizer.pad_token_id == tokenizer.convert_tokens_to_ids(PAD)
    table = model.get_input_embeddings().weight
    assert torch.equal(table[: len(plain)], plain)
    own = AutoTokenizer.from_pretrained(base)(" Fully supported", add_special_tokens=False)
    assert len(own.input_ids) == 2
    assert torch.allclose(table[numbers[FULLY]], plain[own.input_ids].mean(0))
    mean = load_base(recipe(base, new_rows="mean"))
    row = mean.model.get_input_embeddings().weight[numbers[FULLY]]
    assert torch.allclose(row, plain.mean(0), atol=1e-6)


def test_only_the_label_of_a_case_is_learned(base: Path) -> None:
    tokenizer = load_base(recipe(base)).tokenizer
    texts, too_long = critic_texts(tokenizer, CASES, 192)
    assert too_long == 0
    numbers = token_ids(tokenizer)
    for text, case in zip(texts, CASES, strict=True):
        assert text.ids[-1] == text.labels[-1] == numbers[case.label]
        assert (text.labels[:-1] == IGNORED).all()


def test_evidence_is_cut_to_fit_and_the_rest_never(base: Path) -> None:
    tokenizer = load_base(recipe(base)).tokenizer
    whole = case_ids(tokenizer, CASES[1], 1000)
    assert whole is not None
    cut = case_ids(tokenizer, CASES[1], len(whole) - 3)
    assert cut is not None
    assert len(cut) == len(whole) - 3
    tail = tokenizer("\n\n### Response:\n", add_special_tokens=False).input_ids
    assert cut[-len(tail) :] == whole[-len(tail) :] == tail
    assert case_ids(tokenizer, CASES[1], 20) is None
    assert critic_texts(tokenizer, CASES, 20) == ([], len(CASES))


def test_passages_are_masked_pair_by_pair_and_their_tags_learned(base: Path) -> None:
    tokenizer = load_base(recipe(base)).tokenizer
    block = "[Retrieval]<paragraph>Kettle\nIt was built</paragraph>[Relevant]"
    output = f"{block} It was.[Fully supported]{block} built.[Fully supported][Utility:5]"
    text = reflective_text(tokenizer, "When was it?", output, 500)
    assert text is not None
    prompt = "### Instruction:\nWhen was it?\n\n### Response:\n"
    assert tokenizer.decode(text.ids).startswith(f"<s>{prompt}[Retrieval]")
    learned = tokenizer.decode(text.labels[text.labels != IGNORED])
    bare = "[Retrieval]<paragraph></paragraph>[Relevant]"
    assert learned == (
        f"{bare} It was.[Fully supported]{bare} built.[Fully supported][Utility:5]</s>"
    )
    opening = list(text.ids).index(token_ids(tokenizer)["<paragraph>"])
    cut = reflective_text(tokenizer, "When was it?", output, opening + 3)
    assert cut is not None
    assert (cut.labels[opening + 1 :] == IGNORED).all()
    assert len(cut.ids) == opening + 3
    assert reflective_text(tokenizer, "When was it?", output, 5) is None


def test_the_words_of_an_unsupported_sentence_need_not_be_learned(base: Path) -> None:
    tokenizer = load_base(recipe(base)).tokenizer
    block = "[Retrieval]<paragraph>Kettle\nIt was built</paragraph>[Relevant]"
    wrong, right = f"{block} It was.{NO_SUPPORT}", f"{block} built.{FULLY}[Utility:5]"
    text = reflective_text(tokenizer, "When?", wrong + right, 500, learn_unsupported=False)
    assert text is not None
    learned = tokenizer.decode(text.labels[text.labels != IGNORED])
    bare = "[Retrieval]<paragraph></paragraph>[Relevant]"
    assert learned == f"{bare}{NO_SUPPORT}{bare} built.{FULLY}[Utility:5]</s>"


def test_the_commands_make_a_model_that_reflects(base: Path, tmp_path: Path) -> None:
    def call(*words: object) -> str:
        done = runner.invoke(app, [*map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    cases, pairs = tmp_path / "cases.jsonl", tmp_path / "pairs.jsonl"
    write_records(cases, CASES)
    asked = [Pair(instruction=case.instruction, output="It was built.") for case in CASES]
    write_records(pairs, [*asked, Pair(instruction="Why?", output="")])
    (tmp_path / "kettle.md").write_text("# Kettle\n\nThe kettle of Peru was built in 1700.\n")
    index, critic, model = tmp_path / "index", tmp_path / "critic", tmp_path / "model"
    call("index", tmp_path / "kettle.md", "--index", index)
    common = [
        word
        for name, value in recipe(base, epochs=4, max_length=256).model_dump().items()
        if value is not None
        for word in ("--set", f"{name}={value}")
    ]
    told = call("train", "critic", cases, "--output", critic, "--held-out", 0.25, *common)
    assert "relevance: cases 6, accuracy 1" in told
    assert not (critic / WORK).exists()
    with pytest.raises(CragError, match="Shorten"):
        load_critic(critic).labels([CASES[0].model_copy(update={"instruction": "When? " * 900})])
    made = json.loads(call(
        "reflect-data", "generator", pairs, "--critic", critic, "--index", index,
        "--output", tmp_path / "records.jsonl", "--set", "keep_without_retrieval=1",
    ))  # fmt: skip
    assert made["rejected"] == {"an output without a sentence": 1}
    assert made["records"] == len(asked)
    write_records(tmp_path / "empty.jsonl", [Pair(instruction="Why?", output="")])
    nothing = [
        "reflect-data", "generator", tmp_path / "empty.jsonl", "--critic", critic,
        "--index", index, "--output", tmp_path / "nothing.jsonl",
    ]  # fmt: skip
    with pytest.raises(CragError, match="no record could be made: 1 an output without"):
        runner.invoke(app, [str(word) for word in nothing], catch_exceptions=False)
    assert not (tmp_path / "nothing.jsonl").exists()
    truth = written(tmp_path / "truth.jsonl", articles(2))
    known = json.loads(call(
        "reflect-data", "generator", pairs, "--truth", truth, "--index", index,
        "--output", tmp_path / "known.jsonl", "--set", "keep_without_retrieval=1",
    ))  # fmt: skip
    assert known["tokens"]["[No Retrieval]"] == made["records"]
    call(
        "train", "generator", tmp_path / "records.jsonl", "--output", model, *common,
        "--set", "epochs=14",
    )  # fmt: skip
    card = json.loads((model / CARD).read_text())
    losses = card["metrics"]["training"]
    assert losses["last_loss"] < 0.5 < losses["first_loss"]
    assert card["kind"] == "generator"
    backend = TransformersReflection(model)
    prefix = Prefix(CASES[0].instruction)
    decided = backend.decide([prefix])[0]
    begins = read_records(tmp_path / "records.jsonl", ReflectiveRecord)[0].output
    assert begins.startswith(decided.emitted)
    passage = Passage("Kettle", "The kettle of Peru was built in 1700.")
    (candidate,) = backend.candidates(
        [Continuation(prefix, passage)], SegmentLimits(max_tokens=12, whole_answer=True)
    )
    assert "It was built." in candidate.text


ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "papers" / "recipes" / "self_rag_7b.toml"
BLOCK = "[Retrieval]<paragraph>Kettle\nIt was built</paragraph>[Relevant]"
RECORDS = [
    (f"When was it? {n}", f"{BLOCK} It was built in 17{n}.[Fully supported][Utility:5]")
    for n in range(24)
]


def test_the_file_for_several_gpus_is_one_that_accelerate_reads() -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    read = load_config_from_file(str(RECIPE.with_name("self_rag_fsdp.yaml")))
    assert (read.distributed_type, read.mixed_precision) == ("FSDP", "bf16")
    recipe = language_recipe("generator", RECIPE, {})
    assert recipe.accumulation % read.num_processes == 0
    assert recipe.accumulation * recipe.batch_size == 128


@pytest.mark.nightly
def test_two_processes_train_what_one_does(base: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    rows = [{"instruction": asked, "output": said} for asked, said in RECORDS]
    data = written(tmp_path / "records.jsonl", rows)
    settings = {"base": base, "accumulation": 4, "batch_size": 1, "max_length": 300, "steps": 4,
                "learning_rate": 1e-3}  # fmt: skip
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    made = []
    for processes in (1, 2):
        output = tmp_path / f"of{processes}"
        launched = [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python",
            "--nproc-per-node", str(processes), Path(sys.executable).parent / "crag",
            "train", "generator", data, "--output", output, *options,
        ]  # fmt: skip
        done = subprocess.run(
            [str(word) for word in launched], capture_output=True, text=True, check=False,
            timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.count("Written to") == 1
        made.append(load_file(output / "model.safetensors"))
    one, two = made
    assert one.keys() == two.keys()
    assert all(torch.allclose(one[name], two[name], atol=2e-5) for name in one)
