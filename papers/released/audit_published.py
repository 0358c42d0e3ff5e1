"""Count the faults of the published CRAG files, and compare prompts and strips with its programs.

    python -m crag.papers.released.audit_published CRAG [--runs N]

CRAG is a checkout of the repository HuskyInSalt/CRAG; nothing is copied from it. Printed are the
faults of each folder in ``data``; in how many prompts crag and the official inference agree to the
letter, with the official wording, which is read from the program itself; and in how many passages
both cut the same strips. The command ends with 1 if a prompt or strip differs.
docs/method/paper-and-code.md has the counts of the first table.
"""

import argparse
import ast
import asyncio
import inspect
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from crag.correction.strips import as_split, decompose, neutral_knowledge
from crag.errors import DataError
from crag.papers.bench.answering import Answerer, Resources
from crag.papers.bench.examples import TaskName
from crag.papers.bench.experiments import Variant
from crag.papers.bench.report import table
from crag.papers.bench.units import Unit
from crag.papers.loading.alignment import Alignment, align
from crag.papers.loading.crag import CHOICES, PASSAGES, SOURCES
from crag.papers.loading.crag import read as read_folder
from crag.papers.loading.crag_knowledge import (
    FILES,
    SECOND_HALF,
    has_halves,
    read_knowledge,
    released_lines,
)
from crag.papers.released.crag_inputs import FOLDERS
from crag.papers.released.official_program import Count
from crag.parts import Parts
from crag.prompts import Prompts
from crag.settings import Decomposition
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever

MODELS = ("selfrag_llama", "llama")
"""The official names of the two generators; only PubHealth's prompt differs between them."""
ACTIONS = {"internal": "correct", "external": "incorrect", "combined": "ambiguous"}
_MARKS = {"question": "<<Q>>", "knowledge": "<<K>>", "published_options": "<<O>>"}
_NUMERIC = re.compile(r"1: ")


def main() -> int:
    """Print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--runs", type=int, help="questions of each folder; default: all")
    given = parser.parse_args()
    print(faults_table(given.checkout))
    same = True
    for count in compare(given.checkout, given.runs):
        failed = f", and in {count.failed} the official program fails" if count.failed else ""
        print(f"{count.what}: equal in {count.equal} of {count.runs}{failed}", flush=True)
        same &= count.equal == count.runs
    return int(not same)


def faults_table(checkout: Path) -> str:
    """Return the faults of each folder with their counts; a dash where there is no such file."""
    names = [name for name in FOLDERS if (checkout / "data" / name / SOURCES).is_file()]
    counts = {name: dict(faults(checkout / "data" / name)) for name in names}
    rows = list(dict.fromkeys(row for column in counts.values() for row in column))
    return table(
        ["", *names], [[row, *(str(counts[name].get(row, "-")) for name in names)] for row in rows]
    )


def faults(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield what is wrong with a folder, as (fault, count); counts of 0 too."""
    given = _lines(folder / SOURCES)
    questions = [" ".join(line.split()) for line in given]
    yield "questions", len(questions)
    yield "questions with white space around", sum(line != line.strip() for line in given)
    yield "questions that repeat the one before", sum(a == b for a, b in pairwise(questions))
    for file in FILES.values():
        if (path := folder / "ref" / file).is_file():
            yield from _faults_of(path, file, questions)
    if (path := folder / CHOICES).is_file():
        options = _lines(path)
        yield "options with numbers for labels", sum(map(bool, map(_NUMERIC.match, options)))
        for count in (3, 5):
            held = [len(re.findall(r"(?:^|; )[A-E1-5]: ", line)) == count for line in options]
            yield f"questions with {count} options", sum(held)
    if (path := folder / PASSAGES).is_file():
        lines = _lines(path)
        whole = [line for line in lines if SECOND_HALF.search(line)]
        yield f"{PASSAGES}: lines with Self-CRAG's texts", len(whole)


def _faults_of(path: Path, file: str, questions: Sequence[str]) -> Iterator[tuple[str, int]]:
    lines = _lines(path)
    yield f"{file}: lines", len(lines)
    yield f"{file}: lines to the official reader", len(released_lines(path))
    yield f"{file}: lone carriage returns", sum(line.count("\r") for line in lines)
    yield f"{file}: empty lines", sum(not line.strip().removeprefix("#") for line in lines)
    told = [line.replace("\r", " ") for line in lines]
    changed = [neutral_knowledge(line) != line for line in told]
    if file != FILES["combined"]:
        marked = [line.startswith("#") or not line.strip() for line in lines]
        yield f"{file}: lines without the mark", marked.count(False)
        yield f"{file}: questions with another's line", _misplaced(align(questions, told))
        yield f"{file}: lines that disarming changes", sum(changed)
        return
    small = sum(line.startswith("knowledge") for line in told)
    yield f"{file}: lines with small letters", small
    own = {one.name: one.texts for one in read_knowledge(path.parents[1], questions)}
    texts = zip(told, own.get("internal", ()), own.get("external", ()), strict=False)
    joined = [has_halves(line, internal, external) for line, internal, external in texts]
    yield f"{file}: questions with another's halves", joined.count(False)
    yield f"{file}: lines that disarming changes", sum(changed)


def _misplaced(found: Alignment) -> int:
    return sum(place != question for question, place in enumerate(found.places))


def _lines(path: Path) -> list[str]:
    lines = path.read_bytes().decode().split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def compare(checkout: Path, runs: int | None = None) -> Iterator[Count]:
    """Yield how many prompts and passages are equal to those of the official programs."""
    prompt_of = official(checkout / "scripts" / "CRAG_Inference.py", "format_prompt", "TASK_INST")
    for name, task in FOLDERS.items():
        if (checkout / "data" / name / SOURCES).is_file():
            for model in MODELS if task == "pubhealth" else MODELS[:1]:
                yield asyncio.run(_prompts(checkout, name, task, model, prompt_of, runs))
    path = checkout / "scripts" / "internal_knowledge_preparation.py"
    cut = official(path, "extract_strips_from_psg")
    for folder in (checkout / "data" / name for name in FOLDERS):
        if (folder / PASSAGES).is_file():
            yield from _strips(folder / PASSAGES, cut, runs)


def official(path: Path, name: str, *constants: str) -> Callable[..., Any]:
    """Return one function of a program, with the constants it reads, and run nothing else of it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(path, "it is not there; name a checkout of HuskyInSalt/CRAG") from error
    wanted = [node for node in tree.body if _defines(node) & {name, *constants}]
    space: dict[str, Any] = {}
    exec(compile(ast.Module(wanted, []), str(path), "exec"), space)  # noqa: S102 - what was asked for
    if name not in space:
        raise DataError(path, f"it has no function {name!r}")
    found: Callable[..., Any] = space[name]
    return found


def _defines(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


async def _prompts(  # noqa: PLR0913, PLR0917 - what is compared
    checkout: Path,
    name: str,
    task: TaskName,
    model: str,
    prompt_of: Callable[..., str],
    runs: int | None,
) -> Count:
    """Compare the prompts of crag's row with published knowledge, of all three actions."""

    def officially(place: int, question: str, paragraph: str) -> str:
        named = [model] if "modelname" in inspect.signature(prompt_of).parameters else []
        return prompt_of(place, name, question, paragraph, *named)

    chat = FakeChatModel()
    parts = Parts(
        retriever=FakeRetriever(),
        evaluator=FakeEvaluator(),
        model=chat,
        prompts=wording(officially, f"answer_{task}"),
    )
    answerer = Answerer(Resources(parts=parts, model="none", disarm=False))
    examples = read_folder(checkout / "data" / name, task, as_published=True).examples
    equal, compared = 0, 0
    with chdir(checkout / "scripts"):
        for place, example in islice(enumerate(examples), runs):
            for kind, text in example.knowledge.items():
                variant = Variant(
                    name="v",
                    method="crag_published",
                    settings={"task": task, "only": ACTIONS[kind]},
                )
                await answerer.answer(Unit(variant, example, {}, 0))
                asked = str(chat.prompts.pop()[-1].content)
                equal += asked == officially(place, example.question, text)
                compared += 1
    what = f"prompts of {name}" + (f" for {model}" if task == "pubhealth" else "")
    return Count(what, equal, compared)


def wording(officially: Callable[[int, str, str], str], name: str) -> Prompts:
    """Read the official wording out of the program, by marks in the place of what it fills in."""
    folder = Path(tempfile.mkdtemp(prefix="crag-wording-"))  # Read as long as the audit runs.
    (folder / "data" / "arc_challenge").mkdir(parents=True)
    (folder / "scripts").mkdir()
    choices = folder / "data" / "arc_challenge" / CHOICES
    choices.write_text(f"{_MARKS['published_options']}\n", encoding="utf-8")
    with chdir(folder / "scripts"):
        text = officially(0, _MARKS["question"], _MARKS["knowledge"]).replace("$", "$$")
    for placeholder, mark in _MARKS.items():
        text = text.replace(mark, f"${placeholder}")
    (folder / f"{name}.md").write_text(f"[user]\n{text}\n", encoding="utf-8")
    return Prompts.from_folder(folder)


def _strips(path: Path, cut: Callable[..., list[str]], runs: int | None) -> Iterator[Count]:
    """Compare the strips of every passage, as the official reader leaves it and stripped."""
    lines = [line.strip().split("[sep]") for line in _lines(path)[:runs]]
    stripped = [(passage.strip(), passage.strip()) for line in lines for passage in line]
    left = [
        (as_split(passage.strip(), place, len(line)), passage)
        for line in lines
        for place, passage in enumerate(line)
    ]
    modes: list[tuple[str, Decomposition, str, list[tuple[str, str]]]] = [
        ("fixed_num of stripped passages", "fixed_num", "fixed_num", stripped),
        ("fixed_num as passages are read", "fixed_num_spaced", "fixed_num", left),
        ("excerption", "excerption", "excerption", stripped),
    ]
    for what, ours, theirs, passages in modes:
        equal, failed = 0, 0
        for own, passage in passages:
            try:
                wanted = cut(psg=passage, mode=theirs)
            except IndexError:  # Fewer than ten words, of which it can make no strip.
                failed += 1
                continue
            equal += decompose(own, ours) == wanted
        counted = len(passages) - failed
        yield Count(f"{what}, {path.parent.name}", equal, counted, failed)


if __name__ == "__main__":
    sys.exit(main())
