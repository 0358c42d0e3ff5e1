"""Choose the parts of a graph from the environment."""

from typing import Any, cast

from crag.errors import SettingsError
from crag.evaluators import (
    ReaderAttributor,
    ReaderEvaluator,
    load_evaluator,
    packaged_reader,
)
from crag.extras import attribute_named, is_attribute
from crag.factory.embeddings import choose_encoder
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.generation.chat import DEFAULT_MODEL
from crag.index.retriever import IndexRetriever
from crag.index.store import DocumentIndex
from crag.parts import (
    Attributor,
    ChatModel,
    Evaluator,
    PageReader,
    Parts,
    Quoter,
    ReflectionBackend,
    WebSearcher,
)
from crag.prompts import PACKAGED, Prompts
from crag.runtime.environment import REFLECTIONS, Environment

SEARCHER_HINT = "set TAVILY_API_KEY or SEARXNG_URL, or CRAG_SEARCH=wikipedia"
"""How to get a searcher from the environment."""


def choose_parts(environment: Environment, *, index_must_exist: bool = False) -> Parts:
    """Return all parts; the index opens on first use, or now if it must exist.

    Raises:
        CragError: a named part cannot be used, or the index is missing or empty.
    """
    encoder = choose_encoder(environment)
    index = DocumentIndex(environment.index, encoder)
    if index_must_exist:
        index.open()
    model, prompts = choose_model(environment), choose_prompts(environment)
    evaluator = choose_evaluator(environment, model, prompts)
    searcher, quoter = choose_searcher(environment), ExtractiveAnswerer(evaluator)
    return Parts(
        retriever=IndexRetriever(index),
        evaluator=evaluator,
        model=model,
        quoter=quoter,
        attributor=choose_attributor(evaluator, model),
        searcher=searcher,
        searcher_hint=SEARCHER_HINT,
        reader=choose_reader(environment) if searcher else None,
        reflection=choose_reflection(environment, evaluator, quoter, model, prompts),
        prompts=prompts,
    )


def choose_model(environment: Environment) -> ChatModel | None:
    """Return the chat model, or None if none is configured.

    Raises:
        CragError: the named model lacks a key or a package.
    """
    if environment.model is None and environment.openai_api_key is None:
        return None
    return load_chat_model(
        environment.model or DEFAULT_MODEL,
        base_url=environment.openai_base_url,
        api_key=environment.key,
        framing=environment.framing,
    )


def choose_prompts(environment: Environment) -> Prompts:
    """Return the prompts: those of the folder that `CRAG_PROMPTS` names, otherwise the packaged.

    Raises:
        PromptError: a prompt of the folder cannot be used.
    """
    folder = environment.prompts
    return PACKAGED if folder is None else Prompts.from_folder(folder)


def choose_evaluator(
    environment: Environment,
    model: ChatModel | None = None,
    prompts: Prompts = PACKAGED,
    name: str = "",
) -> Evaluator:
    """Return the evaluator of the environment, or that of a name.

    Raises:
        CragError: it cannot be used.
    """
    token = environment.evaluator_token
    key = token.get_secret_value() if token else None
    return load_evaluator(name or environment.evaluator, model=model, prompts=prompts, token=key)


def choose_attributor(evaluator: Evaluator, model: ChatModel | None) -> Attributor | None:
    """Return what finds the strip that supports a sentence: the reader, whoever else judges.

    None without a model, whose sentences it would be. The packaged one keeps its own thresholds,
    since those that `crag calibrate` fits to an index say nothing of single sentences.
    """
    if model is None:
        return None
    packaged = packaged_reader()
    if isinstance(evaluator, ReaderEvaluator) and evaluator.model is not packaged.model:
        return ReaderAttributor(evaluator)
    return ReaderAttributor(packaged)


def choose_searcher(environment: Environment) -> WebSearcher | None:
    """Return the web searcher, or None if none is configured.

    Nothing leaves the machine unless configured: Wikipedia needs no key, so it must be named.

    Raises:
        CragError: `CRAG_SEARCH` is not a known name, or the service's key or address is missing or
            wrong.
    """
    by_key = "tavily" if environment.tavily_api_key else "searxng"
    default = by_key if environment.tavily_api_key or environment.searxng_url else "none"
    name = environment.search or default
    match name if is_attribute(name) else name.lower():
        case "none":
            return None
        case "tavily":
            from crag.web import TavilySearcher

            if (key := environment.tavily_api_key) is None:
                raise SettingsError("CRAG_SEARCH", name, "it needs a key: set TAVILY_API_KEY")
            return TavilySearcher(key.get_secret_value(), base_url=environment.tavily_base_url)
        case "searxng":
            from crag.web import SearxngSearcher

            if environment.searxng_url is None:
                raise SettingsError("CRAG_SEARCH", name, "it needs a server: set SEARXNG_URL")
            return SearxngSearcher(environment.searxng_url)
        case "wikipedia":
            from crag.web import WikipediaSearcher

            return WikipediaSearcher(
                language=environment.wikipedia_language, base_url=environment.wikipedia_url,
                contact=environment.contact,
            )  # fmt: skip
        case _ if is_attribute(name):
            from crag.web.searchers import FunctionSearcher

            function: Any = attribute_named(name, "CRAG_SEARCH")
            if not callable(function):
                allowed = "it must be a function search(query, limit)"
                raise SettingsError("CRAG_SEARCH", name, allowed)
            return cast("WebSearcher", FunctionSearcher(cast("Any", function)))
        case _:
            allowed = "allowed are tavily, wikipedia, searxng, none and module:function"
            raise SettingsError("CRAG_SEARCH", name, allowed)


def choose_reader(environment: Environment) -> PageReader:
    """Return the page reader."""
    from crag.web.reader import HttpPageReader

    return HttpPageReader(allow_loopback=environment.allow_loopback)


def choose_reflection(
    environment: Environment,
    evaluator: Evaluator,
    quoter: Quoter,
    model: ChatModel | None,
    prompts: Prompts = PACKAGED,
) -> ReflectionBackend:
    """Return the reflection back end: by default the chat model, or without one the evaluator.

    Models load and servers are called on first use.

    Raises:
        CragError: something it needs is not set, or not installed.
    """
    required = environment.reflection_tokens == "required"
    name = environment.reflection or ("embedded" if model is None else "prompted")
    match name.lower() if name.lower() in REFLECTIONS else name:
        case "embedded":
            from crag.reflection.backends.embedded import EmbeddedReflection

            return EmbeddedReflection(evaluator, quoter)
        case "prompted":
            from crag.reflection.backends.prompted import PromptedReflection

            if model is None:
                allowed = "it asks a model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL"
                raise SettingsError("CRAG_REFLECTION", name, allowed)
            return PromptedReflection(model, prompts=prompts)
        case "server":
            from crag.reflection.backends.completions import CompletionsReflection

            url = environment.reflection_url or environment.openai_base_url
            if url is None:
                allowed = "it needs a completions server such as vLLM: set CRAG_REFLECTION_URL"
                raise SettingsError("CRAG_REFLECTION", name, allowed)
            model_name, key = environment.reflection_model, environment.key
            return CompletionsReflection(
                model_name, base_url=url, api_key=key, tokens_required=required
            )
        case place:
            from crag.reflection.backends.transformers import TransformersReflection

            device, dtype = environment.reflection_device, environment.reflection_dtype
            return TransformersReflection(
                place, device=device, dtype=dtype, tokens_required=required
            )
