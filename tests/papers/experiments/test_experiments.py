"""Experiment files: those that ship, what they expand to, and what is wrong with others."""

from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template

from crag.errors import DataError, SettingsError
from crag.papers.experiments.experiments import read_experiment
from crag.papers.experiments.summary import metrics_of
from crag.reflection.prompt_format import base_prompt
from crag.reflection_settings import RELEASED_LONG, RELEASED_SHORT
from crag.settings import Settings, settings_from_text

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
    assert len(experiment.variants) >= 5


def test_there_is_one_for_each_table() -> None:
    assert {path.stem for path in SHIPPED} >= {
        "popqa", "pubhealth", "arc", "biography", "triviaqa", "asqa", "actions", "operations",
        "robustness", "efficiency", "thresholds", "k", "evaluators", "judging", "support_weight",
        "reflection_popqa", "reflection_pubhealth", "reflection_asqa",
        "retrieval_threshold_popqa", "retrieval_threshold_pubhealth",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stem", "variant", "numbers"),
    [
        ("popqa", "crag", [54.9, 59.8]),
        ("pubhealth", "rag", [48.9, 39.0]),
        ("arc", "self-crag, assembled", [27.9, 67.2]),
        ("actions", "crag, without Correct", [53.2, 58.3]),
        ("actions", "self-crag, only Ambiguous", [44.9, 59.8]),
        ("operations", "crag, without selection", [50.9, 58.6]),
        ("operations", "rag, web always", [52.2, 53.8]),
        ("efficiency", "self-crag", [0.908]),
        ("evaluators", "evaluator of the run", [84.3]),
        ("triviaqa", "self-rag", [66.4]),
        ("biography", "self-rag, as released", [32.2, 81.2]),
        ("reflection_popqa", "self-rag, hard constraints", [28.3]),
        ("reflection_pubhealth", "self-rag, no retrieval", [73.0]),
        ("reflection_asqa", "self-rag, top passage only", [28.6]),
    ],
)
def test_the_papers_numbers_stand_where_they_belong(
    stem: str, variant: str, numbers: list[float]
) -> None:
    experiment = read_experiment(ROOT / "papers" / "tables" / f"{stem}.toml")
    (found,) = (one for one in experiment.variants if one.name == variant)
    assert list(found.paper.values()) == numbers


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_row_says_what_it_reproduces_and_what_not(path: Path) -> None:
    for variant in read_experiment(path).variants:
        assert variant.reproduces, variant.name
        assert variant.differs, variant.name
        if variant.paper:
            assert not variant.reproduces.startswith("nothing"), variant.name


def released(stem: str, name: str) -> Settings:
    experiment = read_experiment(ROOT / "papers" / "tables" / f"{stem}.toml")
    (variant,) = (one for one in experiment.variants if one.name == name)
    return settings_from_text(variant.settings)


@pytest.mark.parametrize(
    ("stem", "passages"),
    [("popqa", 10), ("triviaqa", 10), ("pubhealth", 5), ("arc", 5), ("asqa", 5), ("biography", 5)],
)
def test_rows_as_released_have_the_released_settings(stem: str, passages: int) -> None:
    given = released(stem, "self-rag, as released")
    assert (given.k, given.retrieval_mode) == (passages, "always")
    if stem in {"asqa", "biography"}:
        joined = {"biography": RELEASED_LONG - {"released_citations"} | {"released_biography"}}
        assert given.compat == joined.get(stem, RELEASED_LONG)
        assert (given.form, given.accumulation) == ("long", "product")
        assert (given.beam_width, given.max_depth, given.max_segment_tokens) == (2, 7, 300)
    else:
        # Where every question retrieves, no ratio is computed.
        assert given.compat == RELEASED_SHORT - {"released_ratio"}
        assert given.form == "short"
        assert given.max_segment_tokens == (50 if stem in {"pubhealth", "arc"} else 100)
    assert (given.delta == 0) == (stem == "asqa")


def test_the_studies_of_inference_vary_one_setting_each() -> None:
    folder = ROOT / "papers" / "tables"
    for stem, name in [
        ("support_weight", "weight_support"),
        ("retrieval_threshold_popqa", "delta"),
        ("retrieval_threshold_pubhealth", "delta"),
    ]:
        experiment = read_experiment(folder / f"{stem}.toml")
        found = [settings_from_text(one.settings) for one in experiment.variants]
        values = [getattr(one, name) for one in found]
        assert values == sorted(set(values))
        assert len(values) >= 5
        assert len({one.model_copy(update={name: None}).model_dump_json() for one in found}) == 1
    assert "retrieval_frequency" in experiment.metrics


def test_changes_take_the_place_of_settings(tmp_path: Path) -> None:
    text = SMALL + 'settings = { k = 3, upper = "none" }\n'
    (variant,) = read_experiment(written(tmp_path, text), {"k": "7"}).variants
    assert settings_from_text(variant.settings).k == 7
    assert settings_from_text(variant.settings).upper is None


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
        before, after = (settings_from_text(one.settings) for one in (variant, changed))
        assert (after.upper, after.lower) == (None, None)
        assert before.upper is not None
        assert after.model_dump(exclude={"upper", "lower"}) == before.model_dump(
            exclude={"upper", "lower"}
        )


def test_an_experiment_about_thresholds_keeps_its_own() -> None:
    path = ROOT / "papers" / "tables" / "thresholds.toml"
    variants = read_experiment(path, thresholds="evaluator").variants
    given = [settings_from_text(one.settings).upper for one in variants]
    assert given == [None, 0.2, 0.4, 0.6, 0.8, 0.95, 0.6, 0.6]


@pytest.mark.parametrize("task", ["pubhealth", "arc", "biography", "asqa"])
def test_prompts_of_another_task_are_refused(task: str) -> None:
    path = ROOT / "papers" / "tables" / f"{task}.toml"
    with pytest.raises(SettingsError, match="give --thresholds evaluator"):
        read_experiment(path, {"task": "default"})


def test_none_is_open_only_where_it_is_no_choice() -> None:
    settings = settings_from_text({"titles": "none", "strip_threshold": "none", "upper": None})
    assert (settings.titles, settings.strip_threshold, settings.upper) == ("none", None, None)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('method = "rag"', 'method = "rug"', "method 'rug' is none of crag, decomposed"),
        ('method = "rag"', 'method = "rag"\nsettings = { k = 0 }', "setting 'k' cannot be 0"),
        ('method = "rag"', 'method = "rag"\nsettings = { kk = 1 }', "'kk'"),
        ('task = "popqa"', 'task = "poqa"', "task: Input should be 'popqa'"),
        ('baseline = "rag"', 'baseline = "crag"', "the baseline 'crag' is not a variant"),
        ('name = "Small"', "nome = 1", "name: Field required"),
        ('name = "Small"', 'name = "Small"\nseeds = []', "seeds"),
        ('name = "Small"', 'name = "S"\nretrieval_accuracies = [30.0]', "shares from 0 to 1"),
        ('[[variant]]\nname = "rag"', "[[variant]]", "variant.0.name: Field required"),
        ("[[variant]]", "[[variant", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(DataError, match=r"small\.toml") as raised:
        read_experiment(written(tmp_path, SMALL.replace(old, new)))
    assert told in str(raised.value)


def test_two_variants_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = SMALL + SMALL[SMALL.index("[[variant]]") :]
    with pytest.raises(DataError, match="variants of the same name: rag"):
        read_experiment(written(tmp_path, twice))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_experiment(tmp_path / "missing.toml")


@pytest.mark.parametrize("metric", ["mach", "str_em"])
def test_a_metric_of_another_task_or_none(tmp_path: Path, metric: str) -> None:
    text: Any = SMALL.replace("baseline", f'metrics = ["{metric}"]\nbaseline')
    with pytest.raises(SettingsError, match="for the task popqa there are match"):
        metrics_of(read_experiment(written(tmp_path, text)))


def test_the_template_for_the_published_model_writes_its_prompt() -> None:
    path = ROOT / "papers" / "tables" / "selfrag_chat_template.jinja"
    messages = [{"role": "system", "content": "rules"}, {"role": "user", "content": "Who?"}]
    written = Template(path.read_text("utf-8")).render(messages=messages)
    assert written == base_prompt("Who?")
