"""What a completions server can do wrong, said with what to do about it."""

from crag.errors import ModelError, ModelProblem
from crag.events import redact

_LONGEST = 300
"""Characters of the server's own words."""


def faults() -> tuple[type[Exception], ...]:
    """Return what the client and LangChain raise for a failed request or a malformed reply."""
    from openai import OpenAIError

    return (OpenAIError, ValueError, TypeError, KeyError, AttributeError)


def model_error(error: Exception, model: str, host: str, key: str) -> ModelError:
    """Return the error for a failed request to the server at `host`, without `key` in it."""
    problem, said = _diagnosed(error, host)
    words = redact(str(error)).replace(key, "[secret]") if key else redact(str(error))
    words = " ".join(words.split())[:_LONGEST]
    return ModelError(model, problem, f"{said} ({type(error).__name__}: {words})")


def _diagnosed(error: Exception, host: str) -> tuple[ModelProblem, str]:  # noqa: PLR0911
    import openai

    match error:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return "key", f"{host} refused the key. Check OPENAI_API_KEY or `api_key`"
        case openai.NotFoundError():
            return "unknown", f"{host} does not serve it under this name, or not at this URL"
        case openai.RateLimitError():
            return "failed", f"{host} is asked too often. Wait, or raise its limits"
        case openai.APITimeoutError():
            return "failed", f"{host} did not reply in time. Raise `timeout`, or generate less"
        case openai.APIConnectionError():
            return "failed", f"{host} cannot be reached. Check `base_url`, and that it runs"
        case openai.APIStatusError() if error.status_code >= 500:  # noqa: PLR2004
            return "failed", f"{host} failed. Look at its log, or try again later"
        case openai.APIStatusError():
            return "failed", (
                f"{host} refused the request. If it allows fewer log-probabilities, raise "
                "--max-logprobs; if the prompt is too long, lower `longest_passage`"
            )
        case _:
            return "failed", f"the reply of {host} is no completion. Check `base_url`"
