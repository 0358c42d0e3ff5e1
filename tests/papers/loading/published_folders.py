"""Folders of the shape of the published CRAG data, with their faults, about made-up people.

Each has eight questions, the published ones 500 to 1,399; see docs/method/paper-and-code.md.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.papers.loading.conftest import PASSAGES, QUESTIONS, SUBJECTS

WEB = [f"{name}: {name} is a {work}.[1] ; {name}: Known for it." for name, work, _ in SUBJECTS]
CHOICES = "A: ruler; B: balance; C: cup; D: clock"


def write_published(checkout: Path) -> None:
    """Write the four folders into ``data``."""
    write_popqa(checkout / "data" / "popqa")
    write_biography(checkout / "data" / "bio")
    write_pubhealth(checkout / "data" / "pubqa")
    write_arc(checkout / "data" / "arc_challenge")


def write_popqa(folder: Path) -> None:
    """A web text is lost and a later one doubled, so that the lines between are the neighbours'."""
    web = [*WEB[:2], *WEB[3:6], *WEB[5:]]
    _write(folder, QUESTIONS, PASSAGES, web, _joined(PASSAGES, web))


def write_biography(folder: Path) -> None:
    """Separators in small letters, and Self-CRAG's three texts for passages."""
    questions = [f"Who is {name}?" for name, _, _ in SUBJECTS]
    internal = [f"{name} // {text}" for (name, *_), text in zip(SUBJECTS, PASSAGES, strict=True)]
    joined = [line.replace("Knowledge", "knowledge") for line in _joined(internal, WEB)]
    _write(folder, questions, internal, WEB, joined)
    texts = zip(internal, WEB, joined, strict=True)
    lines = [f"T // {one} [sep] T // {two} [sep] T // {three}" for one, two, three in texts]
    _write_lines(folder / "retrieved_psgs", lines)


def write_pubhealth(folder: Path) -> None:
    """Web texts without mark, from their middle on, and empty ones; claims with spaces around."""
    claims = [PASSAGES[0] + "  ", f" {PASSAGES[1]}", *PASSAGES[2:]]
    web = [f"#{text}" for text in WEB]
    web[2], web[4], web[5] = web[2][12:], "", "#"
    _write(folder, claims, PASSAGES, WEB, _joined(PASSAGES, [line[1:] for line in web]))
    _write_lines(folder / "ref" / "incorrect", web)


def write_arc(folder: Path) -> None:
    """Web texts one line too late, within lines carriage returns; odd labels of options.

    The program that joined both kinds took each carriage return for the end of a line, and the
    first character of each for the mark.
    """
    web = ["", *(f"#{text}" for text in WEB)]
    web[1], web[4] = web[1].replace(" ; ", "\r; "), web[4].replace(" ; ", "\rMore: ")
    as_lines = [line[1:] for line in "\n".join(web).replace("\r", "\n").split("\n")]
    _write(folder, QUESTIONS, PASSAGES, WEB, _joined(PASSAGES, as_lines))
    _write_lines(folder / "ref" / "incorrect", web)
    choices = [CHOICES] * len(QUESTIONS)
    choices[1] = "1: ruler; 2: balance; 3: cup; 4: clock"
    choices[2], choices[3] = "A: ruler; B: balance; C: cup", f"{CHOICES}; E: plan A: none"
    _write_lines(folder / "choices", choices)


def _joined(internal: Sequence[str], external: Sequence[str]) -> list[str]:
    return [
        f"Knowledge1: {one} [sep] Knowledge2: {two}"
        for one, two in zip(internal, external, strict=False)
    ]


def _write(
    folder: Path,
    questions: Sequence[str],
    internal: Sequence[str],
    external: Sequence[str],
    joined: Sequence[str],
) -> None:
    (folder / "ref").mkdir(parents=True)
    _write_lines(folder / "sources", questions)
    _write_lines(folder / "ref" / "correct", [f"#{text}" for text in internal])
    _write_lines(folder / "ref" / "incorrect", [f"#{text}" for text in external])
    _write_lines(folder / "ref" / "ambiguous", joined)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_bytes("\n".join(lines).encode())
