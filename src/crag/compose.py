"""Choose the parts from the environment, and say which were chosen and why."""

from typing import Literal, NamedTuple

from crag.encoder import SentenceEncoder, packaged_encoder
from crag.environment import Environment
from crag.errors import CragError
from crag.evaluators import CrossEncoderEvaluator, T5Evaluator, load_evaluator
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.generation.chat import DEFAULT_MODEL
from crag.parts import ChatModel, Parts, WebSearcher
from crag.retrieval import DocumentIndex, IndexRetriever
from crag.web import TavilySearcher

State = Literal["ready", "missing", "broken"]


class Choice(NamedTuple):
    """One part as `crag doctor` shows it."""

    part: str
    state: State
    in_use: str
    why: str
    todo: str


def choose_encoder(environment: Environment) -> SentenceEncoder:
    """Return the sentence encoder; its weights load on first use."""
    name = environment.embedding_model
    return SentenceEncoder(name) if name else packaged_encoder()


def choose_model(environment: Environment) -> ChatModel | None:
    """Return the chat model, or None when nothing says which.

    Raises:
        CragError: a model is named that cannot be used, for want of a key or a package.
    """
    key, name = environment.openai_api_key, environment.model
    if name is None and key is None:
        return None
    return load_chat_model(
        name or DEFAULT_MODEL,
        base_url=environment.openai_base_url,
        api_key=key.get_secret_value() if key else None,
    )


def choose_searcher(environment: Environment) -> WebSearcher | None:
    """Return the web searcher, or None without a key."""
    key = environment.tavily_api_key
    return TavilySearcher(key.get_secret_value()) if key else None


def choose_parts(environment: Environment, *, index_must_exist: bool = False) -> Parts:
    """Return all parts; the index is opened by the retriever's first use, or now if it must exist.

    Raises:
        CragError: a part is named that cannot be used, or the index is missing or empty.
    """
    encoder = choose_encoder(environment)
    index = DocumentIndex(environment.index, encoder)
    if index_must_exist:
        index.count()
    model = choose_model(environment)
    evaluator = load_evaluator(environment.evaluator, encoder, model=model)
    return Parts(
        retriever=IndexRetriever(index),
        evaluator=evaluator,
        model=model,
        quoter=ExtractiveAnswerer(evaluator),
        searcher=choose_searcher(environment),
    )


def examine(environment: Environment) -> list[Choice]:
    """Say of each part whether it is ready, why it was chosen and what to do about it."""
    return [
        _encoder(environment),
        _index(environment),
        _evaluator(environment),
        _model(environment),
        _searcher(environment),
    ]


def _encoder(environment: Environment) -> Choice:
    encoder = choose_encoder(environment)
    why = "CRAG_EMBEDDING_MODEL" if environment.embedding_model else "packaged, works offline"
    try:
        encoder.verify()
    except CragError as error:
        return Choice("embeddings", "broken", encoder.name, why, str(error))
    return Choice("embeddings", "ready", encoder.name, why, "")


def _index(environment: Environment) -> Choice:
    try:
        index = DocumentIndex(environment.index, choose_encoder(environment))
        size = index.count()
    except CragError as error:
        return Choice("index", "missing", environment.index, "CRAG_INDEX or default", str(error))
    return Choice("index", "ready", environment.index, f"{size:,} chunks", "")


def _evaluator(environment: Environment) -> Choice:
    name = environment.evaluator
    try:
        encoder, model = choose_encoder(environment), choose_model(environment)
        evaluator = load_evaluator(name, encoder, model=model)
        if isinstance(evaluator, T5Evaluator | CrossEncoderEvaluator):
            evaluator.verify()
        thresholds = evaluator.thresholds
    except CragError as error:
        return Choice("evaluator", "broken", name, "CRAG_EVALUATOR", str(error))
    why = f"upper {thresholds['upper']:g}, lower {thresholds['lower']:g}"
    return Choice("evaluator", "ready", f"{name} ({type(evaluator).__name__})", why, "")


def _model(environment: Environment) -> Choice:
    try:
        model = choose_model(environment)
    except CragError as error:
        return Choice("answers", "broken", str(environment.model), "CRAG_MODEL", str(error))
    if model is None:
        todo = "set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL, for written answers"
        return Choice("answers", "ready", "quotations", "no chat model is configured", todo)
    why = environment.openai_base_url or ("CRAG_MODEL" if environment.model else "OPENAI_API_KEY")
    return Choice("answers", "ready", environment.model or DEFAULT_MODEL, why, "")


def _searcher(environment: Environment) -> Choice:
    if environment.tavily_api_key is None:
        todo = "set TAVILY_API_KEY, so that Incorrect and Ambiguous have a second source"
        return Choice("web search", "missing", "none", "no key", todo)
    return Choice("web search", "ready", "Tavily", "TAVILY_API_KEY", "")
