"""Choose the parts from the environment, and say which were chosen and why."""

from typing import Literal, NamedTuple, get_args

from crag.encoder import SentenceEncoder, packaged_encoder
from crag.environment import DEFAULT_PAGE_CACHE, Environment
from crag.errors import CragError, SearchError, SettingsError
from crag.evaluators import CrossEncoderEvaluator, T5Evaluator, load_evaluator
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.generation.chat import DEFAULT_MODEL
from crag.parts import ChatModel, PageReader, Parts, WebSearcher
from crag.retrieval import DocumentIndex, IndexRetriever
from crag.web import SearxngSearcher, TavilySearcher, WikipediaSearcher

State = Literal["ready", "missing", "broken"]
SearchName = Literal["tavily", "wikipedia", "searxng", "none"]


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
    """Return the web searcher, or None where nothing says which.

    Nothing leaves the machine unless it was configured: Wikipedia, which needs no key, is chosen by
    name only.

    Raises:
        CragError: `CRAG_SEARCH` is no known name, or what the service needs is missing or wrong.
    """
    match _search_name(environment)[0]:
        case "tavily":
            return _tavily(environment)
        case "wikipedia":
            return WikipediaSearcher(
                language=environment.wikipedia_language,
                base_url=environment.wikipedia_url,
                contact=environment.contact,
            )
        case "searxng":
            return _searxng(environment)
        case "none":
            return None


def choose_reader(environment: Environment) -> PageReader:
    """Return the reader of web pages, with its cache on disk; nothing is opened before its use."""
    from crag.web.reader import HttpPageReader

    return HttpPageReader(allow_loopback=environment.allow_loopback, cache=environment.page_cache)


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
    searcher = choose_searcher(environment)
    return Parts(
        retriever=IndexRetriever(index),
        evaluator=evaluator,
        model=model,
        quoter=ExtractiveAnswerer(evaluator),
        searcher=searcher,
        reader=choose_reader(environment) if searcher else None,
    )


def examine(environment: Environment) -> list[Choice]:
    """Say of each part whether it is ready, why it was chosen and what to do about it."""
    return [
        _encoder(environment),
        _index(environment),
        _evaluator(environment),
        _model(environment),
        *examine_web(environment),
    ]


def examine_web(environment: Environment) -> list[Choice]:
    """Say the same of web search and of the reader of pages alone; nothing is loaded or sent."""
    return [_searcher(environment), _reader(environment)]


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


def _search_name(environment: Environment) -> tuple[SearchName, str]:
    """Return the name of the search service and the variable that chose it.

    Raises:
        SettingsError: `CRAG_SEARCH` is none of the names.
    """
    if environment.search is not None:
        wanted = environment.search.strip().lower()
        for name in get_args(SearchName):
            if name == wanted:
                return name, "CRAG_SEARCH"
        allowed = f"allowed are {', '.join(get_args(SearchName))}"
        raise SettingsError("CRAG_SEARCH", environment.search, allowed)
    if environment.tavily_api_key is not None:
        return "tavily", "TAVILY_API_KEY"
    if environment.searxng_url is not None:
        return "searxng", "SEARXNG_URL"
    return "none", ""


def _tavily(environment: Environment) -> TavilySearcher:
    key = environment.tavily_api_key
    if key is None:
        raise SearchError("Tavily", "key", "CRAG_SEARCH=tavily needs a key: set TAVILY_API_KEY")
    return TavilySearcher(key.get_secret_value(), base_url=environment.tavily_base_url)


def _searxng(environment: Environment) -> SearxngSearcher:
    if environment.searxng_url is None:
        message = "CRAG_SEARCH=searxng needs the address of a server: set SEARXNG_URL"
        raise SearchError("SearXNG", "request", message)
    return SearxngSearcher(environment.searxng_url)


def _searcher(environment: Environment) -> Choice:
    part, name, why = "web search", environment.search or "", "CRAG_SEARCH"
    try:
        name, why = _search_name(environment)
        searcher = choose_searcher(environment)
    except CragError as error:
        return Choice(part, "broken", name, why, str(error))
    if searcher is not None:
        return Choice(part, "ready", repr(searcher), why, "")
    if why:
        return Choice(part, "missing", "none", f"{why}=none", "")
    todo = "set TAVILY_API_KEY or SEARXNG_URL, or CRAG_SEARCH=wikipedia, for a second source"
    return Choice(part, "missing", "none", "nothing is configured", todo)


def _reader(environment: Environment) -> Choice:
    part, cache = "pages", environment.page_cache
    try:
        searcher = choose_searcher(environment)
    except CragError:
        searcher = None
    if searcher is None:
        return Choice(part, "missing", "none", "read only what a web search finds", "")
    own = "; pages of this machine too: CRAG_ALLOW_LOOPBACK" if environment.allow_loopback else ""
    chosen = "default" if cache == DEFAULT_PAGE_CACHE else "CRAG_PAGE_CACHE"
    return Choice(part, "ready", f"cache in {cache}", f"{chosen}{own}", "")
