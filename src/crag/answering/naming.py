"""What a passage is about: whether it has the names, codes and numbers of a question."""

from collections.abc import Iterable

from crag.state import State, Strip
from crag.text.wholes import lines_of
from crag.text.words import asks_for_name, names_in, names_lacking


def passage(state: State, strip: Strip) -> str:
    """Return a strip with what says what it is about: what leads it in, its title and section."""
    return f"{strip['text']} {_subject(state, strip)}"


def _subject(state: State, strip: Strip) -> str:
    sections = [
        str(document.metadata.get("section") or "")
        for document in state.get("documents", [])
        if strip["text"] in document.page_content
    ]
    return " ".join([strip.get("before", ""), strip["source"]["title"], *sections])


def lacking(state: State, question: str, strips: Iterable[Strip]) -> list[str]:
    """Return the names of a question that no strip has, nor what says what the strip is about.

    What lacks one may be about another of its kind, such as the ticket of another town.
    """
    return names_lacking(question, " ".join(passage(state, strip) for strip in strips))


def is_about_another(state: State, question: str, strip: Strip, quoted: str) -> bool:
    """Return whether a quotation may be about another thing than the names of the question.

    They must stand in what is quoted, or in what says what it is about: elsewhere in its strip they
    may belong to something else.
    """
    lines = (line for line in lines_of(strip["text"]) if line.kind == "heading")
    headings = [strip["text"][line.start : line.end] for line in lines]
    said = " ".join([quoted, *headings, _subject(state, strip)])
    return bool(names_lacking(question, said)) or _is_of_another(question, quoted)


def _is_of_another(question: str, quoted: str) -> bool:
    """Return whether a quotation begins with a term that is another name than the question's.

    Then it is about that one, and no more than mentions the other.
    """
    term, gap, _ = quoted.partition("\n\n")
    names = [name.casefold() for name in names_in(question) if asks_for_name(name)]
    first = term.partition(" ")[0]
    is_name = asks_for_name(first) and any(map(str.isalpha, first))  # Not the number of a section.
    is_term = bool(gap) and "\n" not in term and is_name
    return bool(names) and is_term and not any(name in term.casefold() for name in names)
