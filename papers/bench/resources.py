"""Collect what a run needs: models, searchers, evaluators, the cache, and judges of answers."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from langchain_core.language_models import BaseChatModel

import crag
from crag.errors import MissingPackageError, ModelError, SettingsError
from crag.evaluators import ChatEvaluator
from crag.extras import how_to_install
from crag.factory.parts import (
    choose_attributor,
    choose_evaluator,
    choose_model,
    choose_prompts,
    choose_reader,
    choose_reflection,
    choose_searcher,
)
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.generation.chat import DEFAULT_MODEL
from crag.papers.bench.cache import Cache, CachedReplies, CachedSearcher, cached
from crag.papers.bench.corpus import CorpusSearcher
from crag.papers.bench.examples import Example
from crag.papers.bench.methods import ExampleRetriever
from crag.papers.bench.verdicts import STYLES, VerdictEvaluator
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
from crag.parts import ChatModel, Evaluator, Parts, WebSearcher
from crag.runtime.environment import Environment

QUOTATION = "quotation (no chat model)"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources that all methods share."""

    parts: Parts
    """The retriever is replaced by the documents of each example."""
    model: str
    """The generator, as reports name it."""
    evaluator: str = "default"
    web: str = ""
    """The search service, as reports name it; empty if there is none."""
    reflection: str = ""
    """The reflection back end, as reports name it."""
    program: str = ""
    """The hash of the source."""
    other: Callable[[str], Evaluator] | None = None
    """Loads the evaluators that variants name."""
    disarm: bool = True
    """Whether texts are disarmed before they enter a prompt; the papers' programs do not."""
    identify: Callable[[str], str] = field(default_factory=lambda: cache(identity_of))
    """Tells a model in a folder from another one that was there; each is looked at once."""

    def named(self, evaluator: str) -> str:
        """List everything besides a unit that its answer depends on."""
        judge = self.identify(evaluator or self.evaluator)
        parts = [self.model, judge, self.web, self.identify(self.reflection), self.program]
        if prompts := self.parts.prompts.identity:
            parts.append(f"prompts {prompts}")
        if not self.disarm:
            parts.append("not disarmed")
        return " | ".join(parts)


def load_resources(
    environment: Environment,
    *,
    cached_in: Path | None = None,
    scores: bool = True,
    corpus: Sequence[Path] = (),
    disarm: bool = True,
) -> Resources:
    """Return the resources; models load at their first use.

    With a chat model there is no fallback to quotations: if the model fails, the row has failed.
    Without `scores` in the cache, measured seconds include the evaluator. The files of `corpus` are
    searched instead of the web.

    Raises:
        CragError: a named part cannot be used.
    """
    kept = Cache(cached_in) if cached_in is not None else None
    prompts = choose_prompts(environment)
    chosen = choose_model(environment)
    model = None if chosen is None else with_cache(chosen, kept)

    def load(name: str) -> Evaluator:
        if model is not None and name in STYLES:
            return VerdictEvaluator(model, style=STYLES[name], prompts=prompts)
        loaded = choose_evaluator(environment, model, prompts, name)
        if kept is None or not scores or isinstance(loaded, ChatEvaluator):
            return loaded  # The replies of a chat model are cached, so that its calls are counted.
        return cached(loaded, kept, identity_of(name))

    evaluator = load(environment.evaluator)
    quoter = ExtractiveAnswerer(evaluator)
    searcher = _searcher(environment, corpus, kept)
    generator = environment.model or DEFAULT_MODEL
    if environment.framing != "chat":
        generator = f"{generator} ({environment.framing} completion)"
    backend = environment.reflection or ("prompted" if model is not None else "embedded")
    return Resources(
        parts=Parts(
            retriever=ExampleRetriever(),
            evaluator=evaluator,
            model=model,
            quoter=None if model is not None else quoter,
            attributor=choose_attributor(evaluator, model),
            searcher=searcher,
            reader=choose_reader(environment) if searcher and not corpus else None,
            reflection=choose_reflection(environment, evaluator, quoter, model, prompts),
            prompts=prompts,
        ),
        model=generator if model is not None else QUOTATION,
        evaluator=environment.evaluator,
        web=repr(searcher) if searcher is not None else "",
        reflection=environment.reflection_model if backend == "server" else backend,
        program=fingerprint(),
        other=load,
        disarm=disarm,
    )


def with_cache(model: ChatModel, kept: Cache | None) -> ChatModel:
    """Return a model with a cache for its replies, if there is one."""
    if kept is None or not isinstance(model, BaseChatModel):
        return model
    return model.model_copy(update={"cache": CachedReplies(kept)})


def _searcher(
    environment: Environment, corpus: Sequence[Path], kept: Cache | None
) -> WebSearcher | None:
    if corpus:
        searcher = CorpusSearcher(corpus)
        searcher.load()
        return searcher
    found = choose_searcher(environment)
    return CachedSearcher(found, kept, repr(found)) if found is not None and kept else found


@cache
def fingerprint() -> str:
    """Return twelve hexadecimal digits that change with any source file or prompt.

    Weights are not included; a model is identified by its name, or what its folder says of it.
    """
    package, digest = Path(crag.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in {".py", ".md"}:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


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


def identity_of(name: str) -> str:
    """Return the name of a model; for a folder, with a digest of what its files say.

    So a model that was trained or calibrated anew in the same folder is another one. JSON counts in
    full, and of other files the size: weights are large, and who trains writes a card.
    """
    folder = Path(name)
    if not name or not folder.is_dir():  # No name would be this folder.
        return name
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            told = path.read_bytes() if path.suffix == ".json" else b"%d" % path.stat().st_size
            digest.update(path.name.encode() + b"\0" + told)
    return f"{name} {digest.hexdigest()[:12]}"
