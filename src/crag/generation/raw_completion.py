"""A base model as a chat model: the prompt is one string, completed as it stands.

Base models such as LLaMA2-hf-7b have no chat template. A server that is asked for chat wraps a
prompt in one all the same, so it is asked for a completion instead.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult


class RawCompletion(BaseChatModel):
    """Ask a text model with the contents of the messages, and nothing around them.

    One message is sent to the letter; of several, such as a system message and a question, each
    follows the one before after a blank line.
    """

    llm: BaseLLM
    """Completes a string, such as `langchain_openai.OpenAI`."""

    @property
    def _llm_type(self) -> str:
        return "raw-completion"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"llm": self.llm._llm_type, **self.llm._identifying_params}  # noqa: SLF001

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager  # The completion is this model's own call, not one below it.
        return _chat_result(self.llm.generate([raw_prompt(messages)], stop, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return _chat_result(await self.llm.agenerate([raw_prompt(messages)], stop, **kwargs))


def raw_prompt(messages: Sequence[BaseMessage]) -> str:
    """Return the one string that stands for the messages."""
    return "\n\n".join(str(message.text) for message in messages)


def _chat_result(result: LLMResult) -> ChatResult:
    (generated,) = result.generations[0]
    counted = (result.llm_output or {}).get("token_usage") or {}
    usage = None
    if counted:
        sent, made = int(counted["prompt_tokens"]), int(counted.get("completion_tokens", 0))
        usage = UsageMetadata(input_tokens=sent, output_tokens=made, total_tokens=sent + made)
    finish = (generated.generation_info or {}).get("finish_reason")
    message = AIMessage(
        content=generated.text, usage_metadata=usage, response_metadata={"finish_reason": finish}
    )
    return ChatResult(generations=[ChatGeneration(message=message)])
