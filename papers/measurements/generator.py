r"""Measure chat models as generators: nothing retrieved, RAG, CRAG and Self-CRAG, on four sets.

    python papers/measurements/generator.py DATA FOLDER --model NAME --url URL [--sets docs …] \
        [--rows …]
    python papers/measurements/generator.py DATA FOLDER --degraded --model NAME --url URL
    python papers/measurements/generator.py DATA FOLDER --model NAME --rows self-rag \
        --reflection MODEL
    python papers/measurements/generator.py DATA FOLDER --report REPORT.md

The model is asked over OpenAI's protocol, by the ordinary graphs and prompts. The rows are those of
`experiments/generator.toml` and `generator_degraded.toml`, the sets those of
`generator_questions.py`. What is finished is kept in FOLDER: the same command goes on where a
killed one stopped, and `--max-seconds` stops one. Before it begins, it tells how long the rest may
take, from a short question to the model and from the rows that are there; `--plan` does only that.

`--reflection` names a model with reflection tokens, as `crag train generator` writes it, that
answers the rows of Self-RAG and Self-CRAG; no chat model is asked then.

`--degraded` withholds the relevant documents of more and more questions of `popqa`. In place of
the web it searches Wikipedia's introductions and the documents of all questions, where what is
withheld can be found, as `make bench-quality` does.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from generator_pictures import draw_curve, draw_verdicts
from generator_questions import SEED, SetName, load
from generator_report import DEGRADED, GENERATOR, Answered, Measured, written
from langchain_core.language_models import BaseChatModel

from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.papers.experiments.answering import Answerer, Resources
from crag.papers.experiments.budget import Budget
from crag.papers.experiments.cache import Cache
from crag.papers.experiments.examples import Example
from crag.papers.experiments.experiments import Experiment, read_experiment
from crag.papers.experiments.resources import RunConfig, load_resources, metered
from crag.papers.experiments.rows import Row, RowFile
from crag.papers.experiments.runner import in_process, remaining_units, run
from crag.papers.experiments.units import ACCURACY, Unit, plan, retrieval_accuracy
from crag.runtime.environment import Environment

BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"
EXPERIMENTS = Path(__file__).parents[1] / "tables"
WITHHELD = (0.25, 0.5, 0.75, 1.0)
"""Shares of the questions with a relevant document that lose it."""
WEB = ("corpus/wikipedia.jsonl", "qa/popqa_dev.jsonl")
"""What is searched in place of the web."""
SLOWEST = 3600.0
"""Seconds for one call of the model."""
TOKENS_PER_WORD = 1.6
_SHARE_READ = {
    "no_retrieval": 0.05,
    "rag": 1.0,
    "rag_reranked": 0.5,
    "crag": 0.35,
    "self_rag": 0.0,
    "self_crag": 0.0,
}
"""Words of the documents that reach the model, where nothing was measured yet."""
_PROBE = "Count the words: " + "seven corrected answers stand below. " * 60
_REPLY = 40
"""Tokens of an answer, where nothing was measured yet."""


def main() -> None:
    """Tell how long it takes, run what is missing, print or write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=["docs"], choices=get_args(SetName))
    parser.add_argument("--rows", nargs="+", default=[], help="rows of the experiment to run")
    parser.add_argument("--limit", type=int, help="take only the first questions of each set")
    parser.add_argument("--part", type=part_of, default=(1, 1), help="such as 1/2: half of them")
    parser.add_argument("--model", help="the model's name; without one nothing is asked")
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--reflection", help="folder of a model with reflection tokens")
    parser.add_argument("--degraded", action="store_true")
    parser.add_argument("--max-seconds", type=float)
    parser.add_argument("--plan", action="store_true", help="tell how long it would take")
    parser.add_argument("--report", type=Path, help="write all rows of FOLDER into this page")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.report is not None:
        report(list(measured(given.data, given.folder)), given.report)
    elif given.model is None:
        print(written(measured(given.data, given.folder)))
    else:
        names: list[SetName] = ["popqa"] if given.degraded else given.sets
        for name in names:
            ask(name, given)


def part_of(text: str) -> tuple[int, int]:
    """Read ``1/2``, with which two servers can share the questions."""
    part, _, parts = text.partition("/")
    if not 1 <= int(part) <= int(parts):
        raise ValueError(text)
    return int(part), int(parts)


def report(found: list[Measured], path: Path) -> None:
    """Write the tables between the marks of the page, and the pictures beside it."""
    page = path.read_text("utf-8") if path.exists() else f"# Generators\n\n{BEGIN}\n{END}\n"
    before, _, rest = page.partition(BEGIN)
    tables = f"{BEGIN}\n{written(found)}{END}"
    path.write_text(before + tables + rest.partition(END)[2], encoding="utf-8")
    draw_verdicts([one for one in found if one.questions == "docs"], path.with_suffix(".png"))
    curves = [one for one in found if one.experiment == DEGRADED]
    if curves:
        draw_curve(curves, path.with_name(f"{path.stem}_degraded.png"))


def ask(name: SetName, given: argparse.Namespace) -> None:
    """Answer the questions of a set, as far as they are not answered yet."""
    examples = load(name, given.data, given.folder / "docs.json")
    random.Random(SEED).shuffle(examples)  # noqa: S311 - what is finished early is a fair draw
    part, parts = given.part
    examples = examples[: given.limit][part - 1 :: parts]
    experiment = chosen(given.degraded, given.rows, examples)
    web = [given.data / name for name in WEB] if given.degraded else ()
    answerer = Answerer(resources(given, web))
    stem = DEGRADED if given.degraded else GENERATOR
    with RowFile(given.folder / f"{stem}-{name}-{given.model}.jsonl") as file:
        todo = remaining_units(plan(experiment, examples), file, answerer, again=True)
        done = list(file.rows.values())
        seconds = {} if given.reflection else expected(todo.units, done, answerer.resources)
        told = ", ".join(f"{row} {hours(total)}" for row, total in seconds.items())
        print(f"{name}, {given.model}: {len(todo.units)} rows to answer. {told}", file=sys.stderr)
        if not given.plan:
            ended = run(todo, file, in_process(answerer, 1), progress)
            print(f"\n{ended.answered} written, {ended.failed} failed {ended.stopped}")


def chosen(degraded: bool, rows: Sequence[str], examples: Sequence[Example]) -> Experiment:
    """Read the experiment, with the rows that are named, or all."""
    stem = DEGRADED if degraded else GENERATOR
    experiment = read_experiment(EXPERIMENTS / f"{stem}.toml")
    kept = [variant for variant in experiment.variant if not rows or variant.name in rows]
    if unknown := set(rows) - {variant.name for variant in experiment.variant}:
        named = ", ".join(variant.name for variant in experiment.variant)
        raise SystemExit(f"--rows: there is no {min(unknown)!r}; there are: {named}")
    changed: dict[str, object] = {"variant": kept}
    if degraded:
        whole = retrieval_accuracy(examples)
        changed["retrieval_accuracies"] = [whole * (1 - share) for share in WITHHELD]
    return experiment.model_copy(update=changed)


def resources(given: argparse.Namespace, web: Sequence[Path]) -> Resources:
    """Return the parts of `crag ask`: with a quoter, and with a model that may take its time."""
    environment = Environment(reflection=given.reflection or "embedded").model_copy(
        update={"model": given.model, "openai_base_url": given.url}
    )
    cache = given.folder / "replies.sqlite"
    # Kept scores would hide that the evaluator reads, and strips would be scored alone.
    config = RunConfig(
        cache=cache, scores=False, corpus=tuple(web), budget=Budget(seconds=given.max_seconds)
    )
    found = load_resources(environment, config)
    asked = load_chat_model(
        given.model, base_url=given.url, timeout=SLOWEST, retries=0, temperature=0
    )
    parts = replace(
        found.parts,
        model=metered(asked, Cache(cache), found.meter),
        quoter=ExtractiveAnswerer(found.parts.evaluator),
    )
    return replace(found, parts=parts)


def expected(units: Sequence[Unit], rows: Sequence[Row], found: Resources) -> dict[str, float]:
    """Return the seconds that the units of each row of the experiment may take.

    They are those of its rows that are there, or of the words that it lets the model read.
    """
    if not units:
        return {}
    reading, writing = speeds(found)
    seconds: dict[str, float] = {}
    for unit in units:
        name = unit.variant.name
        known = [one["seconds"] for one in rows if one["variant"] == name and not one["cached"]]
        words = sum(len(one.page_content.split()) for one in unit.example.documents)
        tokens = TOKENS_PER_WORD * words * _SHARE_READ[unit.variant.method]
        guess = tokens / reading + _REPLY / writing
        seconds[name] = seconds.get(name, 0.0) + (sum(known) / len(known) if known else guess)
    return seconds


def speeds(found: Resources) -> tuple[float, float]:
    """Return how many tokens the model reads in a second, and writes, as it is now."""
    model = found.parts.model
    assert isinstance(model, BaseChatModel)
    bare = model.model_copy(update={"cache": None})
    taken = []
    for text in (f"{time.time()} {_PROBE}", f"{time.time()} Count from 1 to 60."):
        start = time.perf_counter()
        usage = bare.bind(max_tokens=_REPLY).invoke(text).usage_metadata
        assert usage is not None, "the server tells no tokens, so nothing can be planned"
        taken.append((time.perf_counter() - start, usage["input_tokens"], usage["output_tokens"]))
    (read, many, _), (wrote, few, said) = taken
    writing = said / max(0.01, wrote - few * read / many)
    return many / max(0.01, read), writing


def measured(data: Path, folder: Path) -> Iterator[Measured]:
    """Yield what every file of rows in the folder holds, with the questions of its set."""
    known: dict[str, Mapping[str, Example]] = {}
    paths = sorted(folder.glob(f"{GENERATOR}*-*.jsonl"))
    for path in sorted(paths, key=lambda one: "-docs-" not in one.name):
        stem, name, model = path.stem.split("-", 2)
        if name not in known:
            loaded = load(name, data, folder / "docs.json")  # type: ignore[arg-type]
            known[name] = {example.id: example for example in loaded}
        with RowFile(path) as file:
            rows = latest([row for row in file.rows.values() if row["status"] != "failed"])
        answered = [Answered(known[name][row["id"]], row) for row in rows]
        yield Measured(stem, name, model, answered)


def latest(rows: Iterator[Row] | Sequence[Row]) -> list[Row]:
    """Keep the last row of each question, variant and condition: older ones are of old sources."""
    found = {(row["variant"], row["condition"].get(ACCURACY), row["id"]): row for row in rows}
    return list(found.values())


def progress(done: int, total: int, name: str) -> None:
    """Show how far it is."""
    print(f"{done}/{total} {name}", end="\r", file=sys.stderr, flush=True)


def hours(seconds: float) -> str:
    """Write a time as a person would."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004


if __name__ == "__main__":
    main()
