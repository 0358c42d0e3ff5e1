"""The models that some metrics need, by the options of `crag bench` that name them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crag.errors import MissingPackageError, ModelError, SettingsError
from crag.extras import how_to_install
from crag.factory.parts import choose_prompts
from crag.generation import load_chat_model
from crag.papers.bench.cache import Cache
from crag.papers.bench.examples import Example
from crag.papers.bench.resources import with_cache
from crag.papers.metrics import (
    METRICS,
    Metric,
    citation_metrics,
    factscore_metrics,
    installed,
    mauve,
)
from crag.papers.metrics.citing import load_entailment
from crag.papers.metrics.factscore import ChatFactJudge, Pages
from crag.runtime.environment import Environment


@dataclass(frozen=True, kw_only=True)
class Judges:
    """Options that name the models; metrics without a model have no values."""

    entailment: str = ""
    """Hub name or folder of a natural-language-inference model: citation recall and precision."""
    mauve: str = ""
    """Hub name or folder of a language model such as gpt2-large: MAUVE."""
    facts: str = ""
    """Name of a chat model: FActScore, together with `pages`."""
    facts_url: str = ""
    """Address of its OpenAI-compatible server; empty: that of the generator."""
    pages: tuple[Path, ...] = ()
    """JSONL files of `title` and `text` to check facts against, found by the topic's title."""


def load_judges(
    judges: Judges, pages: Pages, environment: Environment, cache: Path
) -> Mapping[str, Metric]:
    """Return the metrics with a named model, by name; facts are checked against `pages`.

    Calls of the fact judge are cached in `cache`.

    Raises:
        CragError: a model, a package or a file cannot be used.
    """
    found: list[Metric] = []
    if judges.mauve:
        if not any(kind in judges.mauve for kind in ("gpt2", "bert")):
            advice = "the package detects its kind by its name, which must contain gpt2 or bert"
            raise ModelError(judges.mauve, "unknown", advice)
        found.append(mauve(judges.mauve))
    if judges.entailment:
        found += citation_metrics(load_entailment(judges.entailment))
    if judges.facts or judges.pages:
        found += factscore_metrics(_judge_of_facts(judges, pages, environment, cache))
    for one in found:
        if not installed(one):
            purpose, advice = f"the metric {one.name}", how_to_install("train")
            raise MissingPackageError("corrective-rag[train]", purpose, advice)
    return {one.name: one for one in [*(m for m in METRICS.values() if m.needs), *found]}


def topics_of(examples: Sequence[Example]) -> list[str]:
    """Return the topics of biographies, in the order of the examples."""
    topics = [str(example.extra.get("topic") or "") for example in examples]
    return [topic for topic in topics if topic]


def _judge_of_facts(
    judges: Judges, pages: Pages, environment: Environment, cache: Path
) -> ChatFactJudge:
    if not judges.facts:
        raise SettingsError("fact-judge", "", "name the chat model that judges facts")
    if not judges.pages:
        allowed = "give --fact-pages, a JSONL file of titles and texts to check facts against"
        raise SettingsError("fact-pages", "", allowed)
    key = environment.openai_api_key
    model = load_chat_model(
        judges.facts,
        base_url=judges.facts_url or environment.openai_base_url,
        api_key=key.get_secret_value() if key else None,
        temperature=0,
    )
    return ChatFactJudge(with_cache(model, Cache(cache)), pages, choose_prompts(environment))
