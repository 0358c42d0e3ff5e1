"""Choose the parts of a graph from the environment.

Each function raises a `CragError` where what the environment names cannot be used.
"""

from types import SimpleNamespace
from typing import cast

from crag.errors import SettingsError
from crag.evaluators import (
    ReaderAttributor,
    ReaderEvaluator,
    load_evaluator,
)
from crag.extras import attribute_named, is_attribute
from crag.factory.embeddings import choose_encoder
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.generation.chat import DEFAULT_MODEL
from crag.index.backends import open_index
from crag.index.retriever import IndexRetriever
from crag.parts import (
    Attributor,
    ChatModel,
    Evaluator,
    PageReader,
    Parts,
    ReflectionBackend,
    WebSearcher,
)
from crag.prompts import PACKAGED, Prompts
from crag.runtime.environment import Environment


def choose_parts(environment: Environment, *, index_must_exist: bool = False) -> Parts:
    """Return all parts; the index opens on first use, or now if it must exist."""
    index = open_index(environment.index, choose_encoder(environment))
    if index_must_exist:
        index.open()
    model, prompts = choose_model(environment), choose_prompts(environment)
    evaluator = choose_evaluator(environment, model, prompts)
    searcher = choose_searcher(environment)
    return Parts(
        retriever=IndexRetriever(index),
        evaluator=evaluator,
        model=model,
        quoter=ExtractiveAnswerer(evaluator),
        attributor=choose_attributor(evaluator, model),
        searcher=searcher,
        reader=choose_reader(environment) if searcher else None,
        reflection=choose_reflection(environment, model, prompts),
        prompts=prompts,
    )


def choose_model(environment: Environment) -> ChatModel | None:
    """Return the chat model, or None if none is configured."""
    if environment.model is None and environment.openai_api_key is None:
        return None
    return load_chat_model(
        environment.model or DEFAULT_MODEL,
        base_url=environment.openai_base_url,
        api_key=environment.key,
    )


def choose_prompts(environment: Environment) -> Prompts:
    """Return the prompts of the folder that `CRAG_PROMPTS` names, otherwise the packaged ones."""
    return Prompts.from_folder(environment.prompts) if environment.prompts else PACKAGED


def choose_evaluator(
    environment: Environment,
    model: ChatModel | None = None,
    prompts: Prompts = PACKAGED,
    name: str = "",
) -> Evaluator:
    """Return the evaluator of the environment, or that of a name."""
    token = environment.evaluator_token
    key = token.get_secret_value() if token else None
    return load_evaluator(name or environment.evaluator, model=model, prompts=prompts, token=key)


def choose_attributor(evaluator: Evaluator, model: ChatModel | None) -> Attributor | None:
    """Return what finds the strip that supports a sentence: the reader, whoever else judges.

    None without a model, whose sentences it would be. The packaged one keeps its own thresholds,
    since those that `crag calibrate` fits to an index say nothing of single sentences.
    """
    packaged = ReaderEvaluator.packaged()
    is_own = isinstance(evaluator, ReaderEvaluator) and evaluator.model is not packaged.model
    return ReaderAttributor(evaluator if is_own else packaged) if model else None  # type: ignore[arg-type]


def choose_searcher(environment: Environment) -> WebSearcher | None:
    """Return the web searcher, or None if none is configured.

    Nothing leaves the machine unless configured: Wikipedia needs no key, so it must be named.
    """
    from crag import web

    key, place, name = environment.tavily_api_key, environment.searxng_url, environment.service
    problem = "allowed are tavily, wikipedia, searxng, none and module:function"
    match name if is_attribute(name) else name.lower():
        case "none":
            return None
        case "tavily":
            if key:
                address = str(environment.tavily_base_url or "https://api.tavily.com")
                return web.TavilySearcher(key.get_secret_value(), address)
            problem = "it needs a key: set TAVILY_API_KEY"
        case "searxng":
            if place:
                return web.SearxngSearcher(str(place))
            problem = "it needs a server: set SEARXNG_URL"
        case "wikipedia":
            return web.WikipediaSearcher(str(environment.wikipedia_url), environment.contact)
        case _ if is_attribute(name):
            if callable(function := attribute_named(name, "CRAG_SEARCH")):
                return cast("WebSearcher", SimpleNamespace(search=function))
            problem = "it must be a function search(query, limit)"
    raise SettingsError("CRAG_SEARCH", name, problem)


def choose_reader(environment: Environment) -> PageReader:
    """Return the page reader."""
    from crag.web.reader import HttpPageReader

    return HttpPageReader(allow_loopback=environment.allow_loopback)


def choose_reflection(
    environment: Environment, model: ChatModel | None, prompts: Prompts = PACKAGED
) -> ReflectionBackend | None:
    """Return the reflection back end: by default the chat model, or without one None.

    None stands for the one that quotes. Models load and servers are called on first use.
    """
    required = environment.reflection_tokens == "required"
    name = environment.reflection or ("embedded" if model is None else "prompted")
    match name.lower() if name.lower() in {"embedded", "prompted", "server"} else name:
        case "embedded":
            return None
        case "prompted":
            from crag.reflection.backends.prompted import PromptedReflection

            if model is not None:
                return PromptedReflection(model, prompts=prompts)
            allowed = "it asks a model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL"
        case "server":
            from crag.reflection.backends.completions import CompletionsReflection

            if url := environment.reflection_url or environment.openai_base_url:
                return CompletionsReflection(
                    environment.reflection_model, base_url=url, api_key=environment.key,
                    tokens_required=required,
                )  # fmt: skip
            allowed = "it needs a completions server such as vLLM: set CRAG_REFLECTION_URL"
        case place:
            from crag.reflection.backends.transformers import TransformersReflection

            return TransformersReflection(place, tokens_required=required)
    raise SettingsError("CRAG_REFLECTION", name, allowed)
