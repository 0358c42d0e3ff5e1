"""What a chat model replies, as all nodes get it."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from crag.answering.model_calls import ask
from crag.testing import FakeChatModel
from crag.text.thoughts import AnswerStream
from tests.misbehaving import RIGHT, THOUGHTS

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
        (
            "A list [1, 2], and  two spaces.\n\nA [key].",
            "A list [1, 2], and  two spaces.\n\nA [key].",
        ),
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
    ],
)
def test_what_a_model_thought_first_is_no_part_of_its_reply(said: str, text: str) -> None:
    reply = ask(FakeChatModel(replies=[said]), [])
    assert (reply.text, reply.problem) == (text, None if text else "empty")


@pytest.mark.parametrize("piece", [1, 3, 7])
@pytest.mark.parametrize("way", sorted({*THOUGHTS} - {"closed_in_mid_line"}))
def test_thoughts_are_held_back_while_they_arrive(way: str, piece: int) -> None:
    text = THOUGHTS[way]({})["choices"][0]["message"]["content"]
    stream = AnswerStream()
    shown = [stream.add(text[at : at + piece]) for at in range(0, len(text), piece)]
    assert "".join([*shown, stream.end()]) == RIGHT


@pytest.mark.parametrize(
    ("said", "finished"),
    [
        ("It is let in May [1]. It is changed every 400", "It is let in May [1]."),
        ("It is let in May. [1] It is", "It is let in May. [1]"),
        ("It is changed every 400 [1]", ""),
    ],
)
def test_the_unfinished_sentence_of_a_cut_reply_is_left_out(said: str, finished: str) -> None:
    message = AIMessage(said, response_metadata={"finish_reason": "length"})
    reply = ask(FakeMessagesListChatModel(responses=[message]), [])
    assert (reply.text, reply.cut) == (finished, "length")


def test_a_reply_of_tokens_alone_is_empty() -> None:
    reply = ask(FakeChatModel(replies=["[No Retrieval][Utility:1]</s>"]), [])
    assert (reply.text, reply.problem) == ("", "empty")
