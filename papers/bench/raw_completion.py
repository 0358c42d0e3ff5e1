"""A base model as a chat model: the prompt is one string, completed as it stands.

Base models such as LLaMA2-hf-7b have no chat template. A server that is asked for chat wraps a
prompt in one all the same, so it is asked for a completion instead.
"""

import os
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult

from crag.errors import SettingsError
from crag.factory.parts import choose_model
from crag.parts import ChatModel
from crag.runtime.environment import Environment

FRAMING = "CRAG_FRAMING"
"""Variable that says how a prompt reaches the generator: chat, or raw as one string."""


def choose_generator(environment: Environment) -> ChatModel | None:
    """Return the chat model of the environment, or with CRAG_FRAMING=raw a base model.

    Raises:
        SettingsError: the framing is neither, or no server completes the string.
    """
    framing = os.environ.get(FRAMING) or "chat"
    if framing == "chat":
        return choose_model(environment)
    if framing != "raw":
        raise SettingsError(FRAMING, framing, "allowed are chat and raw")
    if environment.model is None or environment.openai_base_url is None:
        raise SettingsError(FRAMING, framing, "set CRAG_MODEL, and OPENAI_BASE_URL of its server")
    from langchain_openai import OpenAI

    key = environment.key or "not-needed"
    server: dict[str, Any] = {"base_url": environment.openai_base_url, "api_key": key}
    llm = OpenAI(model=environment.model, **server, timeout=60, temperature=0, cache=False)
    return RawCompletion(llm=llm)


class RawCompletion(BaseChatModel):
    """Ask a text model with the contents of the messages, a blank line between two."""

    llm: BaseLLM
    """Completes a string, such as `langchain_openai.OpenAI`."""

    @property
    def _llm_type(self) -> str:
        return "raw-completion"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager  # The completion is this model's own call, not one below it.
        prompt = "\n\n".join(str(message.text) for message in messages)
        result = self.llm.generate([prompt], stop, **kwargs)
        (generated,) = result.generations[0]
        usage = None
        if counted := (result.llm_output or {}).get("token_usage"):
            sent, made = int(counted["prompt_tokens"]), int(counted.get("completion_tokens", 0))
            usage = UsageMetadata(input_tokens=sent, output_tokens=made, total_tokens=sent + made)
        finish = (generated.generation_info or {}).get("finish_reason")
        message = AIMessage(
            generated.text, usage_metadata=usage, response_metadata={"finish_reason": finish}
        )
        return ChatResult(generations=[ChatGeneration(message=message)])
