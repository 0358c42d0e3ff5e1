"""Which parts are in use, why, and whether they work: `crag doctor` uses each of them once."""

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage

from crag.answering.model_calls import ask
from crag.errors import CragError, EmptyIndexError, IndexNotFoundError
from crag.evaluators import (
    CrossEncoderEvaluator,
    ReaderEvaluator,
    T5Evaluator,
    load_evaluator,
)
from crag.evaluators.remote import RemoteEvaluator, is_service
from crag.events import describe, redact
from crag.factory.embeddings import TorchEncoder
from crag.factory.indexing import choose_encoder
from crag.factory.parts import (
    choose_evaluator,
    choose_model,
    choose_prompts,
    choose_reranker,
)
from crag.factory.reflection import choose_reflection, examine_reflection
from crag.factory.status import PartStatus
from crag.factory.web import choose_searcher, examine_web
from crag.generation import ExtractiveAnswerer
from crag.generation.chat import DEFAULT_MODEL
from crag.index import DocumentIndex
from crag.index.backends import store_of
from crag.index.contract import safe_location
from crag.index.store import embedding_name
from crag.models.encoder import DEFAULT_MODEL as ENCODER
from crag.models.encoder import SentenceEncoder
from crag.parts import ChatModel, Evaluator, Prefix
from crag.plain import counted
from crag.runtime.attempt import Attempt
from crag.runtime.config_file import read_config
from crag.runtime.environment import Environment
from crag.telemetry import check

QUESTION = "What is Corrective RAG?"
_PASSAGE = "Corrective RAG grades what was retrieved and corrects it."


def examine(environment: Environment, *, use: bool = True) -> list[PartStatus]:
    """Return for each part whether it is ready, why it was chosen and how to fix it.

    A part is used once: a text is embedded, the index searched, a passage graded, the chat model,
    the web search and the reflection server asked. With `use` off nothing is loaded or sent, and
    "ready" only says that a part is configured. A part whose own parts are broken is "blocked", so
    that the cause is told once. Addresses are shown without users, passwords and values of queries.
    """
    encoder, embeddings = _encoder(environment, use=use)
    model, answers = _model(environment, use=use)
    evaluator, grades = _evaluator(environment, encoder, model, use=use)
    told = [
        *_installation(),
        *_file(environment),
        embeddings,
        _index(environment, encoder, use=use),
        *_reranker(environment, encoder, model, use=use),
        grades,
        *_fallback(environment, encoder, model, use=use),
        answers,
        *_prompts(environment),
        *_web(environment, use=use),
        _reflection(environment, evaluator, model, answers, use=use),
        *_telemetry(environment),
    ]
    return [PartStatus(*map(redact, one)) for one in told]  # type: ignore[arg-type]


def _installation() -> list[PartStatus]:
    """Tell if the other distribution with a package `crag` is here: both write the same folder."""
    try:
        other = distribution("crag")
    except PackageNotFoundError:
        return []
    todo = (
        "its files and ours overwrite each other: pip uninstall crag corrective-rag, and install "
        "corrective-rag again"
    )
    why = "another distribution with a package of the same name"
    return [PartStatus("installation", "broken", f"crag {other.version}", why, todo)]


def _file(environment: Environment) -> list[PartStatus]:
    """Describe `crag.toml`, if there is one, with what it sets and what overrules it."""
    if environment.config is None:
        return []
    kept: list[str] = []
    overruled: list[str] = []
    for name, value in read_config(environment.config, Environment).items():
        field = next(one for one in Environment.model_fields if one in {name, name.lower()})
        (kept if str(getattr(environment, field)) == str(value) else overruled).append(field)
    why = ", ".join(kept) or "nothing is set"
    why += f"; overruled by the environment: {', '.join(overruled)}" if overruled else ""
    return [PartStatus("configuration", "ready", str(environment.config), why, "")]


def _encoder(environment: Environment, *, use: bool) -> tuple[Embeddings | None, PartStatus]:
    why = "CRAG_EMBEDDING_MODEL" if environment.embedding_model else "packaged, works offline"
    named = environment.embedding_model or ENCODER
    try:
        encoder = choose_encoder(environment)
        if isinstance(encoder, SentenceEncoder | TorchEncoder):
            encoder.verify()
    except CragError as error:
        return None, PartStatus("embeddings", "broken", named, why, str(error))
    if use and (problem := _problem("embeddings", lambda: encoder.embed_query(QUESTION))):
        return None, PartStatus("embeddings", "broken", named, why, problem)
    return encoder, PartStatus("embeddings", "ready", embedding_name(encoder), why, "")


def _index(environment: Environment, encoder: Embeddings | None, *, use: bool) -> PartStatus:
    location, why = safe_location(environment.index), "--index, CRAG_INDEX or default"
    if encoder is None:
        return _blocked("index", location, "embeddings")
    try:
        with DocumentIndex(environment.index, encoder) as index:
            size = index.count()
            if use:
                index.search(QUESTION, 1)
    except (IndexNotFoundError, EmptyIndexError) as error:
        return PartStatus("index", "missing", location, why, str(error))
    except CragError as error:
        return PartStatus("index", "broken", location, why, str(error))
    store = store_of(environment.index)
    why = f"{counted(size, 'chunk')} in {store.engine}" if store else counted(size, "chunk")
    return PartStatus("index", "ready", location, why, "")


def _reranker(
    environment: Environment, encoder: Embeddings | None, model: ChatModel | None, *, use: bool
) -> list[PartStatus]:
    """Describe the reranker, if there is one."""
    part, name, why = "reranker", environment.reranker, "CRAG_RERANKER"
    if name is None:
        return []
    if encoder is None:
        return [_blocked(part, name, "embeddings")]
    try:
        reranker = choose_reranker(environment, encoder, model, choose_prompts(environment))
    except CragError as error:
        return [PartStatus(part, "broken", name, why, str(error))]
    documents = [Document(_PASSAGE)]
    if use and reranker:
        problem = _problem(part, lambda: reranker.compress_documents(documents, QUESTION))
        if problem:
            return [PartStatus(part, "broken", name, why, problem)]
    return [PartStatus(part, "ready", f"{name} ({type(reranker).__name__})", why, "")]


def _evaluator(
    environment: Environment,
    encoder: Embeddings | None,
    model: ChatModel | None,
    *,
    use: bool,
) -> tuple[Evaluator | None, PartStatus]:
    part, name, why = "evaluator", environment.evaluator, "CRAG_EVALUATOR"
    if name == "cosine" and encoder is None:
        return None, _blocked(part, name, "embeddings")
    if name.startswith("chat-") and model is None and _names_model(environment):
        return None, _blocked(part, name, "answers")
    alone = environment.model_copy(update={"evaluator_fallback": None})
    try:
        if is_service(name) and not use:
            return RemoteEvaluator(name), PartStatus(part, "ready", name, why, "")
        evaluator = choose_evaluator(alone, encoder, model)
        if isinstance(
            evaluator, T5Evaluator | CrossEncoderEvaluator | ReaderEvaluator | RemoteEvaluator
        ):
            evaluator.verify()
        thresholds = evaluator.thresholds
    except CragError as error:
        return None, PartStatus(part, "broken", name, why, str(error))
    if use and (problem := _problem(part, lambda: evaluator.score(QUESTION, [_PASSAGE]))):
        return None, PartStatus(part, "broken", name, why, problem)
    why = f"upper {thresholds['upper']:g}, lower {thresholds['lower']:g}"
    served = evaluator.about.name if isinstance(evaluator, RemoteEvaluator) else ""
    in_use = f"{name} ({served or type(evaluator).__name__})"
    return evaluator, PartStatus(part, "ready", in_use, why, "")


def _fallback(
    environment: Environment, encoder: Embeddings | None, model: ChatModel | None, *, use: bool
) -> list[PartStatus]:
    """Describe the evaluator that judges where the other one fails, if there is one."""
    named = environment.evaluator_fallback
    if named is None:
        return []
    alone = environment.model_copy(update={"evaluator": named})
    _, told = _evaluator(alone, encoder, model, use=use)
    why = told.why.replace("CRAG_EVALUATOR", "CRAG_EVALUATOR_FALLBACK")
    return [told._replace(part="fallback", why=why)]


def _model(environment: Environment, *, use: bool) -> tuple[ChatModel | None, PartStatus]:
    part = "answers"
    try:
        model = choose_model(environment)
    except CragError as error:
        broken = PartStatus(part, "broken", str(environment.model), "CRAG_MODEL", str(error))
        return None, broken
    if model is None:
        todo = "set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL, for written answers"
        return None, PartStatus(part, "ready", "quotations", "no chat model is configured", todo)
    name = environment.model or DEFAULT_MODEL
    why = environment.openai_base_url or ("CRAG_MODEL" if environment.model else "OPENAI_API_KEY")
    if use:
        reply = ask(model, [HumanMessage("Reply with one word: ready")])
        if reply.problem:
            return None, PartStatus(part, "broken", name, why, describe(reply.detail))
    return model, PartStatus(part, "ready", name, why, "")


def _prompts(environment: Environment) -> list[PartStatus]:
    """Describe the prompts, if they are the user's own."""
    if environment.prompts is None:
        return []
    place, why = str(environment.prompts), "CRAG_PROMPTS"
    try:
        prompts = choose_prompts(environment)
    except CragError as error:
        return [PartStatus("prompts", "broken", place, why, str(error))]
    return [PartStatus("prompts", "ready", f"{place}: {prompts!r}", why, "")]


def _web(environment: Environment, *, use: bool) -> list[PartStatus]:
    """Describe the web search, and search once; pages are only read for a question."""
    search, pages = examine_web(environment)
    if use and search.state == "ready":
        searcher = choose_searcher(environment)
        if searcher and (problem := _problem("search", lambda: searcher.search(QUESTION, 1))):
            search = search._replace(state="broken", todo=problem)
    return [search, pages]


def _reflection(
    environment: Environment,
    evaluator: Evaluator | None,
    model: ChatModel | None,
    answers: PartStatus,
    *,
    use: bool,
) -> PartStatus:
    told = examine_reflection(environment, has_model=_names_model(environment))
    if told.in_use == "prompted" and answers.state == "broken":
        return _blocked(told.part, told.in_use, "answers")
    if told.in_use == "embedded" and evaluator is None:
        return _blocked(told.part, told.in_use, "evaluator")
    if not use or told.state != "ready" or told.todo:  # A stand-in asks parts that were used.
        return told
    scorer = evaluator or load_evaluator()
    backend = choose_reflection(environment, scorer, ExtractiveAnswerer(scorer), model)
    if problem := _problem("reflection", lambda: backend.decide([Prefix(QUESTION)])):
        return told._replace(state="broken", todo=problem)
    return told


def _telemetry(environment: Environment) -> list[PartStatus]:
    """Describe what keeps traces, metrics and logs from being written, if anything does."""
    try:
        check(environment.telemetry, environment.logs)
    except CragError as error:
        why = f"CRAG_TELEMETRY={environment.telemetry}, CRAG_LOGS={environment.logs}"
        return [PartStatus("telemetry", "broken", "none", why, str(error))]
    return []


def _problem(what: str, use: Callable[[], object]) -> str:
    """Use a part; return what was wrong, or an empty text."""
    with Attempt(what) as attempt:
        use()
    if isinstance(attempt.error, CragError):
        return describe(str(attempt.error))
    return describe(attempt.error) if attempt.error else ""


def _blocked(part: str, in_use: str, by: str) -> PartStatus:
    return PartStatus(part, "blocked", in_use, f"it needs {by}", f"see {by}")


def _names_model(environment: Environment) -> bool:
    return environment.model is not None or environment.openai_api_key is not None
