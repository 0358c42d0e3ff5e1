"""Experiment files: those that ship, what they expand to, and what is wrong with others."""

from pathlib import Path

import pytest
from jinja2 import Template

from crag.errors import DataError, SettingsError
from crag.papers.bench.experiments import read_experiment
from crag.papers.bench.summary import metrics_of
from crag.papers.released.reflection import released_settings
from crag.reflection.prompt_format import base_prompt

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "papers" / "tables").glob("*.toml"))
SMALL = """
name = "Small"
task = "popqa"
baseline = "rag"

[[variant]]
name = "rag"
method = "rag"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_experiment_can_be_run(path: Path) -> None:
    experiment = read_experiment(path)
    assert metrics_of(experiment)
    assert len(experiment.variants) >= 4


def test_the_studies_of_inference_vary_one_setting_each() -> None:
    folder = ROOT / "papers" / "tables"
    for stem, name in [
        ("support_weight", "weight_support"),
        ("retrieval_threshold_popqa", "delta"),
        ("retrieval_threshold_pubhealth", "delta"),
    ]:
        experiment = read_experiment(folder / f"{stem}.toml")
        found = [released_settings(one.settings) for one in experiment.variants]
        values = [getattr(one, name) for one in found]
        assert values == sorted(set(values))
        assert len(values) >= 5
        assert len({one.model_copy(update={name: None}).model_dump_json() for one in found}) == 1
    assert "retrieval_frequency" in experiment.metrics


def test_changes_take_the_place_of_settings(tmp_path: Path) -> None:
    text = SMALL + 'settings = { k = 3, upper = "none" }\n'
    (variant,) = read_experiment(written(tmp_path, text), {"k": "7"}).variants
    assert released_settings(variant.settings).k == 7
    assert released_settings(variant.settings).upper is None


def test_a_sweep_runs_each_variant_with_each_setting(tmp_path: Path) -> None:
    text = 'baseline = "rag, k=1"\n' + SMALL.replace('baseline = "rag"\n', "")
    text = text.replace("[[variant]]", "[[sweep]]\nk = 1\n\n[[sweep]]\nk = 2\n\n[[variant]]")
    variants = read_experiment(written(tmp_path, text)).variants
    assert [(one.name, one.settings["k"]) for one in variants] == [("rag, k=1", 1), ("rag, k=2", 2)]


@pytest.mark.parametrize("stem", ["popqa", "pubhealth", "arc", "biography"])
def test_thresholds_of_the_evaluator_leave_the_task_as_it_is(stem: str) -> None:
    path = ROOT / "papers" / "tables" / f"{stem}.toml"
    pairs = zip(
        read_experiment(path).variants,
        read_experiment(path, thresholds="evaluator").variants,
        strict=True,
    )
    for variant, changed in pairs:
        before, after = (released_settings(one.settings) for one in (variant, changed))
        assert (after.upper, after.lower) == (None, None)
        assert before.upper is not None
        assert after.model_dump(exclude={"upper", "lower"}) == before.model_dump(
            exclude={"upper", "lower"}
        )


@pytest.mark.parametrize("task", ["pubhealth", "arc", "biography", "asqa"])
def test_prompts_of_another_task_are_refused(task: str) -> None:
    path = ROOT / "papers" / "tables" / f"{task}.toml"
    with pytest.raises(SettingsError, match="give --thresholds evaluator"):
        read_experiment(path, {"task": "default"})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('method = "rag"', 'method = "rug"', "method 'rug' is none of crag, self_crag"),
        ('method = "rag"', 'method = "rag"\nsettings = { k = 0 }', "setting 'k' cannot be 0"),
        ('method = "rag"', 'method = "rag"\nsettings = { kk = 1 }', "'kk'"),
        ('task = "popqa"', 'task = "poqa"', "task: Input should be 'popqa', "),
        ('baseline = "rag"', 'baseline = "crag"', "the baseline 'crag' is not a variant"),
        ('name = "Small"', "nome = 1", "name: Field required"),
        ('name = "Small"', 'name = "Small"\nseeds = []', "seeds: List should have at least 1 item"),
        ('name = "Small"', 'name = "Small"\nseeds = [0, 0]', "seeds holds 0 twice"),
        ('name = "Small"', 'name = "Small"\nseed = 0', "seed: Extra inputs are not permitted"),
        ('name = "Small"', 'name = "S"\nretrieval_accuracies = [30.0]', "shares from 0 to 1"),
        ('[[variant]]\nname = "rag"', "[[variant]]", "variant.0.name: Field required"),
        ("[[variant]]", "[[variant", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(DataError, match=r"small\.toml") as raised:
        read_experiment(written(tmp_path, SMALL.replace(old, new)))
    assert told in str(raised.value)


def test_the_template_for_the_published_model_writes_its_prompt() -> None:
    path = ROOT / "papers" / "tables" / "selfrag_chat_template.jinja"
    messages = [{"role": "system", "content": "rules"}, {"role": "user", "content": "Who?"}]
    written = Template(path.read_text("utf-8")).render(messages=messages)
    assert written == base_prompt("Who?")
