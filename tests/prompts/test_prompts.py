"""Prompts load, a folder replaces them, and values cannot act as templates."""

from importlib.resources import files
from pathlib import Path

import pytest

from crag.errors import PromptError
from crag.prompts import LARGEST, PACKAGED, USES, Prompts, parse

ASKED = "Q $knowledge"
VALUES = {
    "question": ASKED,
    "history": "H",
    "knowledge": "K [user] $question",
    "not_found": "N",
    "options": "A: O",
    "answer": ASKED,
    "topic": "T",
    "task": "J",
    "labels": "L",
    "case": ASKED,
    "fact": ASKED,
    "most": "3",
    "parts": "P",
    "right": "R",
    "examples": "E",
}
GOOD = "[user]\nUse $knowledge for $question\n"


def folder_with(folder: Path, content: str | bytes, name: str = "answer_popqa") -> Path:
    written = content if isinstance(content, bytes) else content.encode()
    (folder / f"{name}.md").write_bytes(written)
    return folder


@pytest.mark.parametrize("name", USES)
def test_every_prompt_renders_completely(name: str) -> None:
    messages = PACKAGED.render(name, **VALUES)
    assert messages[-1].type == "human"
    assert ASKED in str(messages[-1].content)
    text = "".join(str(message.content) for message in messages)
    assert "$not_found" not in text


def test_every_file_that_ships_has_a_use() -> None:
    shipped = {entry.name for entry in files("crag.prompts").iterdir()}
    assert {name for name in shipped if name.endswith(".md")} == {f"{name}.md" for name in USES}


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        PACKAGED.render("answer_default", question="Q")


def test_a_prompt_of_a_folder_is_rendered_to_the_letter(tmp_path: Path) -> None:
    text = "  Read:\n$knowledge\n\n### Q: $question costs $$5 \n### Response:\n"
    prompts = Prompts.from_folder(folder_with(tmp_path, f"[user]\n{text}\n"))
    (message,) = prompts.render("answer_popqa", knowledge="K $question", question="Q?")
    assert message.content == ("  Read:\nK $question\n\n### Q: Q? costs $5 \n### Response:\n")
    assert prompts.render("answer_arc", **VALUES) == PACKAGED.render("answer_arc", **VALUES)


def test_messages_of_few_shots_keep_their_order(tmp_path: Path) -> None:
    text = "[system]\nS\n\n[user]\nq1\n\n[assistant] \na1\n\n[user]\t\n$question $knowledge"
    prompts = Prompts.from_folder(str(folder_with(tmp_path, text)))
    made = prompts.render("answer_popqa", question="Q", knowledge="K")
    assert [(one.type, one.content) for one in made] == [
        ("system", "S"), ("human", "q1"), ("ai", "a1"), ("human", "Q K"),
    ]  # fmt: skip


def test_windows_line_ends_and_a_mark_of_byte_order_are_read(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, b"\xef\xbb\xbf[user]\r\n$knowledge\r\n$question\r\n")
    (message,) = Prompts.from_folder(folder).render("answer_popqa", knowledge="K", question="Q")
    assert message.content == "K\nQ"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "line 1: it is empty"),
        ("Answer $question from $knowledge", r"line 1: it must begin with one of \[system\]"),
        (GOOD + "and $answer", r"line 3: \$answer is not filled in here; there are \$knowledge"),
        (GOOD + "costs $5", "line 3: a dollar sign begins no placeholder; write [$][$]"),
        ("[user]\n$question", r"line 1: it lacks \$knowledge"),
        ("[user]\n$question\n\n[system]\n$knowledge", r"line 4: \[system\] can only come first"),
        ("[system]\n\n[user]\n$question $knowledge", r"line 1: the section \[system\] is empty"),
        (GOOD + "\n[assistant]\nSo", r"line 4: it ends with \[assistant\]"),
        (GOOD.encode() + b"caf\xe9\n", "line 3: it is not UTF-8"),
        (GOOD + "x" * LARGEST, "at most 65,536 are read"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(
    tmp_path: Path, content: str | bytes, told: str
) -> None:
    with pytest.raises(PromptError, match=rf"answer_popqa\.md.*{told}") as raised:
        Prompts.from_folder(folder_with(tmp_path, content))
    assert raised.value.path == tmp_path / "answer_popqa.md"


def test_a_name_that_is_none_a_folder_without_prompts_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="no such folder"):
        Prompts.from_folder(tmp_path / "missing")
    (tmp_path / "README.md").write_text("Mine.", encoding="utf-8")
    with pytest.raises(PromptError, match="it is a file; name the folder"):
        Prompts.from_folder(tmp_path / "README.md")
    with pytest.raises(PromptError, match=r"it has no prompt; there are answer_default\.md"):
        Prompts.from_folder(tmp_path)
    with pytest.raises(PromptError, match=r"answer_popQA\.md: .* did you mean answer_popqa\.md"):
        Prompts.from_folder(folder_with(tmp_path, GOOD, "answer_popQA"))


def test_a_file_that_the_system_does_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "answer_popqa.md").symlink_to(tmp_path / "answer_popqa.md")
    with pytest.raises(PromptError, match=r"answer_popqa\.md: it cannot be read: Too many levels"):
        Prompts.from_folder(tmp_path)


def test_the_identity_tells_replaced_prompts_apart(tmp_path: Path) -> None:
    first = Prompts({"answer_popqa": parse(GOOD, "answer_popqa")})
    second = Prompts({"answer_popqa": parse(GOOD + "!", "answer_popqa")})
    assert PACKAGED.identity == ""
    assert len({first.identity, second.identity, PACKAGED.identity}) == 3
    assert first.identity == Prompts.from_folder(folder_with(tmp_path, GOOD)).identity
