"""The prompts, one Markdown file each, and a folder of your own in their place.

A file has one section for each message: ``[system]`` if it needs one, then ``[user]``; few-shot
prompts may alternate ``[user]`` and ``[assistant]``. ``$name`` marks what is filled in, and ``$$``
is a dollar sign. A section is taken to the letter: from the line below its mark to the end of the
file, or to the blank line above the next mark; only the file's last line break is no part of it.
Values are filled in last and never read as templates themselves.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Self

from crag.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

FOLDERS: list[Traversable] = [files("crag.prompts")]
"""Where prompts are; the papers add the folder of theirs."""
_MARK = re.compile(r"^\[(system|user|assistant)\][ \t]*\n?", re.MULTILINE)
_OPTIONAL = {
    "not_found", "instruction", "options", "published_options", "right", "topic", "examples",
}  # fmt: skip
"""Placeholders that a prompt need not have."""


class Prompts:
    """All prompts: the packaged ones, or texts by their names in their place."""

    def __init__(self, replaced: Mapping[str, str] | None = None) -> None:
        self._replaced = dict(replaced or {})

    @classmethod
    def from_folder(cls, folder: str | Path) -> Self:
        """Take ``NAME.md`` of a folder for each prompt to replace; the others stay packaged.

        Raises:
            DataError: there is no prompt in the folder, or one is none: it has another name, no
                sections, lacks a placeholder or has an unknown one. The message names the file.
        """
        folder = Path(folder)
        paths = [path for path in sorted(folder.glob("*.md")) if path.stem.lower() != "readme"]
        if not paths:
            raise DataError(folder, f"there is no prompt, such as {', '.join(sorted(known()))}")
        return cls({path.stem: _checked(path) for path in paths})

    def render(self, name: str, **values: str) -> "list[AnyMessage]":
        """Fill in the prompt `name` and return its messages."""
        from langchain_core.messages import convert_to_messages

        text = self._replaced.get(name) or _text(known()[f"{name}.md"])
        parts = [(role, Template(part).safe_substitute(values)) for role, part in _sections(text)]
        return convert_to_messages(parts)  # type: ignore[return-value]

    def replaces(self, name: str) -> bool:
        """Say whether a prompt stands in the place of the packaged one of this name."""
        return name in self._replaced

    def __repr__(self) -> str:
        return f"replaced: {', '.join(sorted(self._replaced))}" if self._replaced else "packaged"


def known() -> dict[str, Traversable]:
    """Return the files of all packaged prompts by their names."""
    places = [place for folder in FOLDERS for place in folder.iterdir()]
    return {place.name: place for place in places if place.name.endswith(".md")}


def _text(place: Traversable) -> str:
    return place.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")


def _sections(text: str) -> list[tuple[str, str]]:
    """Return role and text of each message of a prompt."""
    head, *parts = _MARK.split(text)
    if head.strip() or not parts or parts[-2] != "user":
        problem = "it must begin with one of [system], [user], [assistant] and end with a [user]"
        raise ValueError(problem)
    *others, last = zip(parts[::2], parts[1::2], strict=True)
    return [*((role, body.removesuffix("\n").removesuffix("\n")) for role, body in others), last]


def _checked(path: Path) -> str:
    """Return the text of a file that can replace a prompt."""
    packaged = known().get(path.name)
    if packaged is None:
        raise DataError(path, f"no prompt has this name; {did_you_mean(path.name, known())}")
    try:
        text = _text(path)
        written = Template("".join(part for _, part in _sections(text)))
    except (OSError, ValueError) as error:
        raise DataError(path, f"it is no prompt: {error}") from None
    if not written.is_valid():
        raise DataError(path, "a dollar sign begins no placeholder; write $$ for the sign itself")
    own = set(Template(packaged.read_text("utf-8")).get_identifiers())
    found = {one.removeprefix("published_") for one in written.get_identifiers()}
    for problem, names in {
        "it lacks": own - _OPTIONAL - found, "nothing fills": found - own - _OPTIONAL
    }.items():  # fmt: skip
        if names:
            raise DataError(path, f"{problem} {', '.join(f'${one}' for one in sorted(names))}")
    return text


PACKAGED = Prompts()
"""The prompts that ship."""
