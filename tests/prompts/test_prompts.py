"""Prompts are read when they are asked for, a folder replaces them, and values are no templates."""

from pathlib import Path

import pytest

import crag.papers  # noqa: F401 - it adds the prompts of the papers
from crag.errors import DataError
from crag.prompts import PACKAGED, Prompts, known

ASKED = "Q $knowledge"
VALUES = dict.fromkeys(
    [
        "history", "not_found", "options", "published_options", "instruction", "answer", "topic",
        "task", "labels", "case", "fact", "right", "examples",
    ],
    "V",
) | {"question": ASKED, "knowledge": "K [user] $question"}  # fmt: skip
GOOD = "[user]\nUse $knowledge for $question\n"


def folder_with(folder: Path, content: str | bytes, name: str = "answer_default") -> Path:
    written = content if isinstance(content, bytes) else content.encode()
    (folder / f"{name}.md").write_bytes(written)
    return folder


@pytest.mark.parametrize("name", sorted(known()))
def test_every_prompt_renders_completely(name: str) -> None:
    messages = PACKAGED.render(name.removesuffix(".md"), **VALUES)
    assert messages[-1].type == "human"
    assert all(str(message.content).strip() for message in messages)


def test_sixteen_prompts_ship_with_the_product() -> None:
    shipped = list((Path(__file__).parents[2] / "prompts").glob("*.md"))
    assert len(shipped) <= 16


def test_a_prompt_of_a_folder_is_rendered_to_the_letter(tmp_path: Path) -> None:
    text = "  Read:\n$knowledge\n\n### Q: $question costs $$5 \n### Response:\n"
    prompts = Prompts.from_folder(folder_with(tmp_path, f"[user]\n{text}\n"))
    (message,) = prompts.render("answer_default", knowledge="K $question", question="Q?")
    assert message.content == ("  Read:\nK $question\n\n### Q: Q? costs $5 \n### Response:\n")
    assert prompts.render("contextualize", **VALUES) == PACKAGED.render("contextualize", **VALUES)


def test_messages_of_few_shots_keep_their_order(tmp_path: Path) -> None:
    text = "[system]\nS\n\n[user]\nq1\n\n[assistant] \na1\n\n[user]\t\n$question $knowledge"
    prompts = Prompts.from_folder(str(folder_with(tmp_path, text)))
    made = prompts.render("answer_default", question="Q", knowledge="K")
    assert [(one.type, one.content) for one in made] == [
        ("system", "S"), ("human", "q1"), ("ai", "a1"), ("human", "Q K"),
    ]  # fmt: skip


def test_windows_line_ends_and_a_mark_of_byte_order_are_read(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, b"\xef\xbb\xbf[user]\r\n$knowledge\r\n$question\r\n")
    (message,) = Prompts.from_folder(folder).render("answer_default", knowledge="K", question="Q")
    assert message.content == "K\nQ"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "it must begin with one of"),
        ("Answer $question from $knowledge", r"it must begin with one of \[system\]"),
        (GOOD + "costs $5", "a dollar sign begins no placeholder; write [$][$]"),
        ("[user]\n$question", r"it lacks \$knowledge"),
        (GOOD + "$topping", r"nothing fills \$topping"),
        (GOOD + "\n[assistant]\nSo", r"end with a \[user\]"),
        (GOOD.encode() + b"caf\xe9\n", "it is no prompt: 'utf-8' codec"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(
    tmp_path: Path, content: str | bytes, told: str
) -> None:
    with pytest.raises(DataError, match=rf"answer_default\.md.*{told}"):
        Prompts.from_folder(folder_with(tmp_path, content))


def test_a_name_that_is_none_and_a_folder_without_prompts(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(DataError, match=r"there is no prompt, such as answer_"):
            Prompts.from_folder(folder)
    with pytest.raises(DataError, match=r"answer_defualt\.md: .* did you mean answer_default\.md"):
        Prompts.from_folder(folder_with(tmp_path, GOOD, "answer_defualt"))
