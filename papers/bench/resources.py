"""Collect what a run needs: models, searchers, evaluators, and judges of answers."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.caches import InMemoryCache
from langchain_core.language_models import BaseChatModel

import crag
from crag.errors import ModelError, SettingsError
from crag.evaluators import ChatEvaluator
from crag.factory.parts import (
    choose_attributor,
    choose_evaluator,
    choose_prompts,
    choose_reader,
    choose_reflection,
    choose_searcher,
)
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.generation.chat import DEFAULT_MODEL
from crag.papers.bench.corpus import CorpusSearcher
from crag.papers.bench.examples import Example
from crag.papers.bench.methods import ExampleRetriever
from crag.papers.bench.raw_completion import RawCompletion, choose_generator
from crag.papers.bench.verdicts import STYLES, VerdictEvaluator
from crag.papers.metrics import (
    METRICS,
    Metric,
    citation_metrics,
    factscore_metrics,
    mauve,
)
from crag.papers.metrics.citing import load_entailment
from crag.papers.metrics.factscore import ChatFactJudge, Pages
from crag.parts import ChatModel, Evaluator, Parts, WebSearcher
from crag.reflection.backends.embedded import EmbeddedReflection
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

    def named(self, evaluator: str = "") -> str:
        """List everything besides a unit that its answer depends on."""
        judge, reflection = _identity(evaluator or self.evaluator), _identity(self.reflection)
        named = (self.model, judge, self.web, reflection, self.parts.prompts, self.program)
        return " | ".join(map(str, named))


def load_resources(
    environment: Environment, *, once: bool = True, corpus: Sequence[Path] = ()
) -> Resources:
    """Return the resources; models load at their first use.

    With a chat model there is no fallback to quotations: if the model fails, the row has failed.
    What variants share is asked `once`; without it, measured seconds include the evaluator. The
    files of `corpus` are searched instead of the web.

    Raises:
        CragError: a named part cannot be used.
    """
    prompts = choose_prompts(environment)
    chosen = choose_generator(environment)
    model = None if chosen is None else _with_cache(chosen)

    def load(name: str) -> Evaluator:
        if model is not None and name in STYLES:
            return VerdictEvaluator(model, style=STYLES[name], prompts=prompts)
        loaded = choose_evaluator(environment, model, prompts, name)
        # The replies of a chat model are cached, so that its calls are counted.
        return loaded if isinstance(loaded, ChatEvaluator) or not once else asked_once(loaded)

    evaluator = load(environment.evaluator)
    quoter = ExtractiveAnswerer(evaluator)
    searcher = _searcher(environment, corpus)
    generator = environment.model or DEFAULT_MODEL
    if isinstance(chosen, RawCompletion):
        generator = f"{generator} (raw completion)"
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
            reflection=choose_reflection(environment, model, prompts)
            or EmbeddedReflection(evaluator, quoter),
            prompts=prompts,
        ),
        model=generator if model is not None else QUOTATION,
        evaluator=environment.evaluator,
        web=repr(searcher) if searcher is not None else "",
        reflection=environment.reflection_model if backend == "server" else backend,
        program=_fingerprint(),
        other=load,
    )


def asked_once(evaluator: Evaluator) -> Evaluator:
    """Return an evaluator that judges each text for a question only once."""
    found = copy(evaluator)
    for name in ("score", "read"):
        if hasattr(evaluator, name):
            setattr(found, name, _remembered(getattr(evaluator, name)))
    return found


def _remembered(judge: Callable[[str, list[Any]], Sequence[Any]]) -> Callable[..., list[Any]]:
    known: dict[tuple[str, Any], Any] = {}

    def judged(question: str, items: Sequence[Any]) -> list[Any]:
        new = [item for item in dict.fromkeys(items) if (question, item) not in known]
        if new:
            found = zip(new, judge(question, new), strict=True)
            known.update({(question, item): value for item, value in found})
        return [copy(known[question, item]) for item in items]

    return judged


def _with_cache(model: ChatModel) -> ChatModel:
    """Return a model that is asked the same only once."""
    if not isinstance(model, BaseChatModel):
        return model
    return model.model_copy(update={"cache": InMemoryCache()})


def _searcher(environment: Environment, corpus: Sequence[Path]) -> WebSearcher | None:
    if corpus:
        return CorpusSearcher(corpus)
    found = copy(choose_searcher(environment))
    if found is not None:
        found.search = cache(found.search)  # type: ignore[method-assign]
    return found


@cache
def _identity(name: str) -> str:
    """Return the name of a model; for a folder, with a digest of its JSON, such as its card."""
    if not name or not Path(name).is_dir():  # No name would be this folder.
        return name
    told = b"".join(path.read_bytes() for path in sorted(Path(name).glob("*.json")))
    return f"{name} {hashlib.sha256(told).hexdigest()[:12]}"


@cache
def _fingerprint() -> str:
    """Return twelve hexadecimal digits that change with any source file or prompt."""
    package, digest = Path(crag.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in {".py", ".md"}:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def load_judges(  # noqa: PLR0913, PLR0917 - the options of the command
    environment: Environment,
    examples: Sequence[Example],
    entailment: str = "",
    similarity: str = "",
    fact_judge: str = "",
    pages: Sequence[Path] = (),
) -> Mapping[str, Metric]:
    """Return the metrics with a named model, by name; those without a model have no values.

    `entailment` is the hub name or folder of a natural-language-inference model (citation recall
    and precision), `similarity` that of a language model such as gpt2-large (MAUVE). `fact_judge`
    names a chat model (FActScore), and `pages` are JSONL files of `title` and `text` to check facts
    against, found by the titles of the topics of `examples`.

    Raises:
        CragError: a model, a package or a file cannot be used.
    """
    found: list[Metric] = []
    if similarity:
        if not any(kind in similarity for kind in ("gpt2", "bert")):
            advice = "the package detects its kind by its name, which must contain gpt2 or bert"
            raise ModelError(similarity, "unknown", advice)
        found.append(mauve(similarity))
    if entailment:
        found += citation_metrics(load_entailment(entailment))
    if fact_judge or pages:
        if not (fact_judge and pages):
            allowed = "give both, a chat model and JSONL files of titles and texts"
            raise SettingsError("fact-judge and fact-pages", fact_judge, allowed)
        model = load_chat_model(
            fact_judge, base_url=environment.openai_base_url, api_key=environment.key
        )
        topics = [one.topic for one in examples]
        judge = ChatFactJudge(
            _with_cache(model).bind(temperature=0),
            Pages(pages, topics),
            choose_prompts(environment),
        )
        found += factscore_metrics(judge)
    return {one.name: one for one in [*(m for m in METRICS.values() if m.needs), *found]}
