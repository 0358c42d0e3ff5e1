"""The reflection back end: a model with reflection tokens, or an approximation."""

from typing import cast, get_args

from crag.errors import CragError, SettingsError
from crag.factory.status import PartStatus
from crag.graph_registry import OFFERED
from crag.parts import ChatModel, Evaluator, Quoter, ReflectionBackend
from crag.prompts import PACKAGED, Prompts
from crag.runtime.config_file import REFLECTIONS
from crag.runtime.environment import Environment
from crag.torch_models import Dtype

_METHODS = " and ".join(
    name.replace("_", "-") for name, graph in OFFERED.items() if "reflection" in graph.needs
)
_STAND_INS = tuple(name for name in REFLECTIONS if name != "server")
_ADVICE = (
    "an approximation; for a model with reflection tokens set CRAG_REFLECTION to server, or to its "
    "folder"
)
_NO_URL = (
    "it needs the address of a completions server such as vLLM: set CRAG_REFLECTION_URL, for "
    "example to http://localhost:8000/v1"
)
_NO_MODEL = "it asks a chat model: set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL"


def choose_reflection(
    environment: Environment,
    evaluator: Evaluator,
    quoter: Quoter,
    model: ChatModel | None,
    prompts: Prompts = PACKAGED,
) -> ReflectionBackend:
    """Return the reflection back end; models load and servers are called on first use.

    Unless `CRAG_REFLECTION` names one, this is the chat model if there is one, and the evaluator
    otherwise.

    Raises:
        SettingsError: something it needs is not set.
    """
    match _name(environment, has_model=model is not None):
        case "embedded":
            from crag.reflection.backends.embedded import EmbeddedReflection

            return EmbeddedReflection(evaluator, quoter)
        case "prompted":
            from crag.reflection.backends.prompted import PromptedReflection

            if model is None:
                raise SettingsError("CRAG_REFLECTION", "prompted", _NO_MODEL)
            return PromptedReflection(model, prompts=prompts)
        case "server":
            return _server(environment)
        case place:
            return _in_process(environment, place)


def examine_reflection(environment: Environment, *, has_model: bool) -> PartStatus:
    """Describe the reflection back end; nothing is loaded or sent."""
    part, name = "reflection", _name(environment, has_model=has_model)
    why = "CRAG_REFLECTION" if environment.reflection else f"for --method {_METHODS}"
    if name == "prompted" and not has_model:
        return PartStatus(part, "broken", name, why, _NO_MODEL)
    if name in _STAND_INS:
        return PartStatus(part, "ready", name, why, _ADVICE)
    try:
        backend = _server(environment) if name == "server" else _in_process(environment, name)
    except CragError as error:
        return PartStatus(part, "broken", name, why, str(error))
    return PartStatus(part, "ready", repr(backend), why, "")


def _name(environment: Environment, *, has_model: bool) -> str:
    named = (environment.reflection or "").strip()
    if named.lower() in REFLECTIONS:
        return named.lower()
    return named or ("prompted" if has_model else "embedded")


def _server(environment: Environment) -> ReflectionBackend:
    from crag.reflection.backends.completions import CompletionsReflection

    url, key = environment.reflection_url or environment.openai_base_url, environment.openai_api_key
    if url is None:
        raise SettingsError("CRAG_REFLECTION", "server", _NO_URL)
    secret = key.get_secret_value() if key else None
    return CompletionsReflection(
        environment.reflection_model,
        base_url=url,
        api_key=secret,
        tokens_required=_tokens_required(environment),
    )


def _in_process(environment: Environment, place: str) -> ReflectionBackend:
    from crag.reflection.backends.transformers import TransformersReflection

    dtype, device = environment.reflection_dtype, environment.reflection_device
    if dtype not in get_args(Dtype):
        allowed = f"allowed are {', '.join(get_args(Dtype))}"
        raise SettingsError("CRAG_REFLECTION_DTYPE", dtype, allowed)
    return TransformersReflection(
        place,
        device=device,
        dtype=cast("Dtype", dtype),
        tokens_required=_tokens_required(environment),
    )


def _tokens_required(environment: Environment) -> bool:
    given = environment.reflection_tokens
    if given not in {"required", "optional"}:
        allowed = "allowed are required and optional"
        raise SettingsError("CRAG_REFLECTION_TOKENS", given, allowed)
    return given == "required"
