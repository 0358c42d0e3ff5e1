"""What a chat model replies, as all nodes get it."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from crag.answering.model_calls import ask
from crag.testing import FakeChatModel
from crag.text.thoughts import AnswerStream
from tests.misbehaving import RIGHT, THOUGHT, THOUGHTS

WRITTEN = (
    "[No Retrieval]Ada Lovelace wrote it.[Retrieval]<paragraph>Ada\nShe was born [1] in 1815."
    "</paragraph>[Relevant] It ran on no engine.[Fully supported][Utility:5]</s>"
)
PLAIN = "Ada Lovelace wrote it. It ran on no engine."


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (WRITTEN, PLAIN),
        ("[Relevant] true[Utility:5]", "true"),
        ("true<paragraph>cut off", "true"),
        *((text, text) for text in ["A list [1, 2], and  two spaces.\n\nA [key]."]),
    ],
)
def test_reflection_tokens_are_removed_and_nothing_else(said: str, text: str) -> None:
    assert ask(FakeChatModel(replies=[said]), []).text == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("<think>\nWho? Ada.\n</think>\n\nAda [1].", "Ada [1]."),
        ("\n<think>Ada.</think>Ada [1].", "Ada [1]."),
        ("Who? Ada.\nYes.\n</think>\n\nAda [1].", "Ada [1]."),
        ("<think>\nWho? Ada, or", ""),
        ("End it with `</think>` [1].", "End it with `</think>` [1]."),
        ("Write [1]:\n<think>\nWho?\n</think>\nAda", "Write [1]:\n\nAda"),
        ("Ada [1].\n```xml\n<think>\n</think>\n```", "Ada [1].\n```xml\n<think>\n</think>\n```"),
        ("See [Analysis] and `List<Thought>` [1].", "See [Analysis] and `List<Thought>` [1]."),
        ("Who?</think>Ada?</think>Ada [1].", "Ada [1]."),
        ("[No Retrieval][Utility:1]</s>", ""),
    ],
)
def test_what_a_model_thought_first_is_no_part_of_its_reply(said: str, text: str) -> None:
    reply = ask(FakeChatModel(replies=[said]), [])
    assert (reply.text, reply.problem) == (text, None if text else "empty")


NAMES = "THINK reasoning scratchpad antThinking chain_of_thought seed:think 思考 pensamiento мысли"
WRITTEN_AROUND = [
    *(f"<{name}>τ</{name}>α" for name in NAMES.split()),
    "<think>τ<think>τ</think>τ</think>α", "<think for='3'>τ</think >α", "α<thinking>τ",
    "<think>τ</think><answer>α</answer>", "<Thought>τ</Thought>\n<Output>α</Output>",
    "[REASONING]τ[/REASONING]\nα", "【思考】τ【/思考】α", "<|inner_prefix|>τ<|inner_suffix|>α",
    "<|START_THINKING|>τ<|END_THINKING|><|START_RESPONSE|>α<|END_RESPONSE|>",
    "<｜begin▁of▁thinking｜>τ<｜end▁of▁thinking｜>α<｜end▁of▁sentence｜>", "α<|im_end|>",
    "<|channel|>analysis<|message|>τ<|end|><|channel|>final <|constrain|>JSON<|message|>α",
    '<details type="reasoning" done="true">\n> τ\n</details>\nα', "```thinking\nτ\n```\nα",
    "Thinking...\nτ\n...done thinking.\n\nα", "α<think>τ</think>",
    "Here is my thought process:\n\nτ.\n\nHere is my response:\n\nα",
]  # fmt: skip
"""Thoughts τ and an answer α as models of many makers write them."""
FIELDS = {"closed_in_mid_line", "field"}


@pytest.mark.parametrize("piece", [1, 3, 7])
@pytest.mark.parametrize("way", [*sorted({*THOUGHTS} - FIELDS), *WRITTEN_AROUND])
def test_thoughts_are_held_back_while_they_arrive(way: str, piece: int) -> None:
    text = way.replace("τ", THOUGHT).replace("α", RIGHT) if way in WRITTEN_AROUND else ""
    text = text or THOUGHTS[way]({})["choices"][0]["message"]["content"]
    stream = AnswerStream()
    shown = [stream.add(text[at : at + piece]) for at in range(0, len(text), piece)]
    assert "".join(shown).strip() == RIGHT
    assert ask(FakeChatModel(replies=[text]), []).text == RIGHT


def test_code_in_thoughts_is_not_that_of_the_answer_after_them() -> None:
    stream = AnswerStream()
    pieces = ("<think>\n``` x</think>It is.\n\n", "And more.")
    assert "".join(map(stream.add, pieces)) == "It is.\n\nAnd more."


@pytest.mark.parametrize(
    ("said", "finished"),
    [
        ("It is let in May [1]. It is changed every 400", "It is let in May [1]."),
        ("It is let in May. [1] It is", "It is let in May. [1]"),
        ("It is changed every 400 [1]", ""),
        ("- It is let in May [1]\n- It is changed", "- It is let in May [1]"),
        ("In May.【1】 It is", "In May.[1]"),
        ("In May [1].\n\n```sh\nlet --may. \nchange --every", "In May [1]."),
    ],
)
def test_the_unfinished_sentence_of_a_cut_reply_is_left_out(said: str, finished: str) -> None:
    message = AIMessage(said, response_metadata={"finish_reason": "length"})
    reply = ask(FakeMessagesListChatModel(responses=[message]), [])
    assert (reply.text, reply.cut) == (finished, "length")


@pytest.mark.parametrize(
    "reason", ["SAFETY", "FinishReason.SAFETY", "sensitive", "content_filtered"]
)
def test_what_a_provider_withheld_is_refused(reason: str) -> None:
    message = AIMessage("It is", response_metadata={"finish_reason": reason})
    assert ask(FakeMessagesListChatModel(responses=[message]), []).problem == "refused"
    block = AIMessage([{"type": "refusal", "refusal": "I will not."}])
    assert ask(FakeMessagesListChatModel(responses=[block]), []).problem == "refused"
