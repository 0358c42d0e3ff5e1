"""Choose all parts of a graph from the environment."""

from typing import Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings

from crag.evaluators import (
    EvaluatorReranker,
    ReaderAttributor,
    ReaderEvaluator,
    load_evaluator,
    packaged_reader,
    with_fallback,
)
from crag.factory.indexing import choose_encoder
from crag.factory.reflection import choose_reflection
from crag.factory.web import SEARCHER_HINT, choose_reader, choose_searcher
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.generation.chat import DEFAULT_MODEL
from crag.index.retriever import IndexRetriever
from crag.index.store import DocumentIndex
from crag.parts import Attributor, ChatModel, Evaluator, Parts, is_reading
from crag.prompts import PACKAGED, Prompts
from crag.runtime import entry_points
from crag.runtime.environment import Environment


def choose_model(environment: Environment) -> ChatModel | None:
    """Return the chat model, or None if none is configured.

    Raises:
        CragError: the named model lacks a key or a package.
    """
    key, name = environment.openai_api_key, environment.model
    if name is None and key is None:
        return None
    return load_chat_model(
        name or DEFAULT_MODEL,
        base_url=environment.openai_base_url,
        api_key=key.get_secret_value() if key else None,
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
    encoder: Embeddings | None = None,
    model: ChatModel | None = None,
    prompts: Prompts = PACKAGED,
) -> Evaluator:
    """Return the evaluator, with the one that takes its place where it fails, if one is named.

    Raises:
        EvaluatorError: one of them cannot be used; or a service does not answer, and nothing is
            named that could take its place.
    """
    second = environment.evaluator_fallback
    replacement = load_evaluator(second, encoder, model=model, prompts=prompts) if second else None
    reads = is_reading(replacement) if replacement else None
    evaluator = load_evaluator(
        environment.evaluator, encoder, model=model, prompts=prompts, reads=reads,
        **service_options(environment),
    )  # fmt: skip
    return with_fallback(evaluator, replacement, str(second)) if replacement else evaluator


def service_options(environment: Environment) -> dict[str, Any]:
    """Return what `load_evaluator` needs for the address of a service."""
    token = environment.evaluator_token
    return {
        "token": token.get_secret_value() if token else None,
        "seconds": environment.evaluator_seconds,
    }


def choose_reranker(
    environment: Environment, encoder: Embeddings, model: ChatModel | None, prompts: Prompts
) -> BaseDocumentCompressor | None:
    """Return the reranker that `CRAG_RERANKER` names, or None.

    Raises:
        CragError: the named one cannot be used.
    """
    name = environment.reranker
    if name is None:
        return None
    added: BaseDocumentCompressor | None
    added = entry_points.make("crag.rerankers", name, BaseDocumentCompressor)
    if added is not None:
        return added
    evaluator = load_evaluator(
        name, encoder, model=model, prompts=prompts, **service_options(environment)
    )
    return EvaluatorReranker(evaluator=evaluator)


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
    evaluator = choose_evaluator(environment, encoder, model, prompts)
    searcher, quoter = choose_searcher(environment), ExtractiveAnswerer(evaluator)
    return Parts(
        retriever=IndexRetriever(index),
        evaluator=evaluator,
        reranker=choose_reranker(environment, encoder, model, prompts),
        model=model,
        quoter=quoter,
        attributor=choose_attributor(evaluator, model),
        searcher=searcher,
        searcher_hint=SEARCHER_HINT,
        reader=choose_reader(environment) if searcher else None,
        reflection=choose_reflection(environment, evaluator, quoter, model, prompts),
        prompts=prompts,
    )
