"""Which parts the environment chooses, why, and what is missing: `crag doctor`."""

from crag.errors import CragError
from crag.evaluators import (
    CrossEncoderEvaluator,
    ReaderEvaluator,
    T5Evaluator,
    load_evaluator,
)
from crag.factory.parts import choose_encoder, choose_model, choose_prompts
from crag.factory.reflection import examine_reflection
from crag.factory.status import PartStatus
from crag.factory.web import examine_web
from crag.generation.chat import DEFAULT_MODEL
from crag.models.encoder import SentenceEncoder
from crag.models.minilm import MODEL as ENCODER
from crag.models.minilm import packaged_model
from crag.retrieval import DocumentIndex
from crag.retrieval.index import safe_location
from crag.retrieval.store import embedding_name
from crag.runtime.environment import Environment


def examine(environment: Environment) -> list[PartStatus]:
    """Return for each part whether it is ready, why it was chosen and how to fix it."""
    return [
        _encoder(environment),
        _index(environment),
        _evaluator(environment),
        _model(environment),
        *_prompts(environment),
        *examine_web(environment),
        examine_reflection(environment, has_model=_has_model(environment)),
    ]


def _encoder(environment: Environment) -> PartStatus:
    why = "packaged, works offline" if packaged_model() else "from the Hugging Face hub, once"
    why = "CRAG_EMBEDDING_MODEL" if environment.embedding_model else why
    try:
        encoder = choose_encoder(environment)
        if isinstance(encoder, SentenceEncoder):
            encoder.verify()
    except CragError as error:
        name = environment.embedding_model or ENCODER
        return PartStatus("embeddings", "broken", name, why, str(error))
    return PartStatus("embeddings", "ready", embedding_name(encoder), why, "")


def _index(environment: Environment) -> PartStatus:
    location = safe_location(environment.index)
    try:
        index = DocumentIndex(environment.index, choose_encoder(environment))
        size = index.count()
        index.close()
    except CragError as error:
        return PartStatus("index", "missing", location, "CRAG_INDEX or default", str(error))
    return PartStatus("index", "ready", location, f"{size:,} chunks", "")


def _evaluator(environment: Environment) -> PartStatus:
    name = environment.evaluator
    try:
        encoder, model = choose_encoder(environment), choose_model(environment)
        evaluator = load_evaluator(name, encoder, model=model)
        if isinstance(evaluator, T5Evaluator | CrossEncoderEvaluator | ReaderEvaluator):
            evaluator.verify()
        thresholds = evaluator.thresholds
    except CragError as error:
        return PartStatus("evaluator", "broken", name, "CRAG_EVALUATOR", str(error))
    why = f"upper {thresholds['upper']:g}, lower {thresholds['lower']:g}"
    return PartStatus("evaluator", "ready", f"{name} ({type(evaluator).__name__})", why, "")


def _model(environment: Environment) -> PartStatus:
    try:
        model = choose_model(environment)
    except CragError as error:
        return PartStatus("answers", "broken", str(environment.model), "CRAG_MODEL", str(error))
    if model is None:
        todo = "set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL, for written answers"
        return PartStatus("answers", "ready", "quotations", "no chat model is configured", todo)
    why = environment.openai_base_url or ("CRAG_MODEL" if environment.model else "OPENAI_API_KEY")
    return PartStatus("answers", "ready", environment.model or DEFAULT_MODEL, why, "")


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


def _has_model(environment: Environment) -> bool:
    try:
        return choose_model(environment) is not None
    except CragError:
        return False
