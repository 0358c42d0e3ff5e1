"""Collect what a run needs from the environment: models, searchers, evaluators, cache."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from crag.evaluators import ChatEvaluator
from crag.factory.parts import (
    choose_attributor,
    choose_evaluator,
    choose_model,
    choose_prompts,
    choose_reader,
    choose_reflection,
    choose_searcher,
)
from crag.generation import ExtractiveAnswerer
from crag.generation.chat import DEFAULT_MODEL
from crag.models.model_card import identity_of
from crag.papers.bench.answering import Resources
from crag.papers.bench.budget import Budget, Meter
from crag.papers.bench.cache import Cache, CachedReplies, CachedSearcher, cached
from crag.papers.bench.corpus import CorpusSearcher
from crag.papers.bench.current_example import ExampleRetriever
from crag.papers.bench.program import fingerprint
from crag.papers.bench.verdicts import STYLES, VerdictEvaluator
from crag.parts import ChatModel, Evaluator, Parts, WebSearcher
from crag.runtime.environment import Environment

QUOTATION = "quotation (no chat model)"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Options that differ between runs and do not affect methods; plain values only."""

    cache: Path | None = None
    """File of the cache; None: no cache."""
    scores: bool = True
    """Cache scores too; otherwise the measured seconds include the evaluator."""
    corpus: tuple[Path, ...] = ()
    """Files to search instead of the web."""
    budget: Budget = field(default_factory=Budget)
    disarm: bool = True
    """Disarm texts in prompts; see `crag.text.untrusted`."""


def load_resources(environment: Environment, config: RunConfig) -> Resources:
    """Return the resources; models load at their first use.

    With a chat model there is no fallback to quotations: if the model fails, the row has failed.

    Raises:
        CragError: a named part cannot be used.
    """
    cache = Cache(config.cache) if config.cache is not None else None
    meter = Meter(config.budget)
    chosen, prompts = choose_model(environment), choose_prompts(environment)
    model = None if chosen is None else metered(chosen, cache, meter)
    remembered = cache if config.scores else None

    def load(name: str) -> Evaluator:
        if model is not None and name in STYLES:
            return VerdictEvaluator(model, style=STYLES[name], prompts=prompts)
        loaded = choose_evaluator(environment, model, prompts, name)
        if remembered is None or isinstance(loaded, ChatEvaluator):
            return loaded  # The replies of a chat model are cached, so that its calls are counted.
        return cached(loaded, remembered, identity_of(name))

    evaluator = load(environment.evaluator)
    quoter = ExtractiveAnswerer(evaluator)
    searcher, web = _searcher(environment, config.corpus, cache)
    reflection = choose_reflection(environment, evaluator, quoter, model, prompts)
    parts = Parts(
        retriever=ExampleRetriever(),
        evaluator=evaluator,
        model=model,
        quoter=None if model is not None else quoter,
        attributor=choose_attributor(evaluator, model),
        searcher=searcher,
        reader=choose_reader(environment) if searcher and not config.corpus else None,
        reflection=reflection,
        prompts=prompts,
    )
    return Resources(
        parts=parts,
        model=_generator(environment) if model is not None else QUOTATION,
        evaluator=environment.evaluator,
        web=web,
        reflection=_reflects(environment, has_model=model is not None),
        program=fingerprint(),
        other=load,
        meter=meter,
        disarm=config.disarm,
    )


def _generator(environment: Environment) -> str:
    name = environment.model or DEFAULT_MODEL
    return name if environment.framing == "chat" else f"{name} ({environment.framing} completion)"


def metered(model: ChatModel, cache: Cache | None, meter: Meter) -> ChatModel:
    """Return the model with a cache for its replies; the meter counts its calls."""
    if not isinstance(model, BaseChatModel):
        return model
    return model.model_copy(update={"cache": CachedReplies(cache, meter)})


def _searcher(
    environment: Environment, corpus: Sequence[Path], cache: Cache | None
) -> tuple[WebSearcher | None, str]:
    if corpus:
        searcher = CorpusSearcher(corpus)
        searcher.load()
        return searcher, repr(searcher)
    found = choose_searcher(environment)
    if found is None:
        return None, ""
    return (CachedSearcher(found, cache, repr(found)) if cache else found), repr(found)


def _reflects(environment: Environment, *, has_model: bool) -> str:
    named = environment.reflection or ("prompted" if has_model else "embedded")
    return environment.reflection_model if named == "server" else named
