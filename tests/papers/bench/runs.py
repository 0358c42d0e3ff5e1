"""What the tests of benchmarks share: a small file of questions, resources, and an experiment."""

import json
from pathlib import Path
from typing import Any

from crag.generation import load_chat_model
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import Experiment, Variant
from crag.papers.bench.methods import ExampleRetriever
from crag.papers.bench.resources import Resources
from crag.papers.bench.runner import Answerer
from crag.papers.loading import load_examples
from crag.parts import Hit, Parts
from crag.reflection.backends.prompted import PromptedReflection
from crag.testing import FakeEvaluator, FakeQuoter, FakeSearcher

THINGS = {"barn": 0.9, "gate": 0.0, "boat": -0.9, "kite": 0.9}
"""The subject of each question, and the score of its documents: three actions are taken."""
HITS = [Hit("Colours", "https://example.org/colours", "The things of the harbour are red.")]


def questions(folder: Path, names: list[str] | None = None) -> Path:
    """Write the file of questions: two documents each, of which one is of the right page."""
    path = folder / "questions.jsonl"
    lines = [json.dumps(_question(name)) for name in names or THINGS]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _question(name: str) -> dict[str, Any]:
    colour = "green" if name == "kite" else "red"
    right = {"title": f"The {name}", "text": f"The {name} is indeed {colour}."}
    other = {"title": "Paint", "text": f"Paint of the {name} is dear."}
    return {
        "id": name,
        "question": f"What colour is the {name}?",
        "answers": [colour],
        "subject_title": f"The {name}",
        "documents": [right, other],
    }


def examples(folder: Path, names: list[str] | None = None) -> list[Example]:
    """Return the questions as a run reads them."""
    return load_examples(questions(folder, names), "popqa").examples


def resources(url: str | None, **replaced: Any) -> Resources:
    """Return resources with a chat model at `url`, and fakes for all else."""
    model = load_chat_model("m", base_url=url, retries=0) if url else None
    parts: dict[str, Any] = {
        "retriever": ExampleRetriever(),
        "evaluator": FakeEvaluator(THINGS, otherwise=0.9),
        "model": model,
        "quoter": None if model else FakeQuoter(),
        "searcher": FakeSearcher(HITS),
        "reflection": PromptedReflection(model) if model else None,
    }
    name = "m" if model else "quotation"
    return Resources(parts=Parts(**parts | replaced), model=name, evaluator="fake")


def answerer(url: str | None, **options: Any) -> Answerer:
    """Return what answers with those resources."""
    return Answerer(resources(url, **options))


def variant(method: str, **settings: Any) -> Variant:
    """Return a variant named after its method."""
    return Variant(name=method, method=method, settings=settings)


def experiment(*variants: Variant, **fields: Any) -> Experiment:
    """Return an experiment whose baseline is the first variant."""
    values: dict[str, Any] = {
        "name": "Colours",
        "task": "popqa",
        "baseline": variants[0].name,
        "metrics": ["match", "match_normalised", "knowledge_recall", "knowledge_words",
                    "abstained", "llm_calls"],
        "variant": list(variants),
    }  # fmt: skip
    return Experiment(**values | fields)
