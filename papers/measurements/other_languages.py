"""Measure language detection, sentences and the index of words on Debian's FAQ in ten languages.

    python papers/measurements/other_languages.py FOLDER [--english FILE.jsonl | FOLDER …]

FOLDER holds the unpacked packages `debian-faq`, `debian-faq-de` and so on (`dpkg-deb -x FILE
FOLDER/NAME`). Each heading of the FAQ is a question, and the text below it its answer. With
`--english`, count the questions or texts of JSONL files, or the Markdown and reStructuredText files
of a folder, that are taken for another language than English.
"""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import snowballstemmer
from langchain_core.documents import Document
from lxml import html

from crag.index.backends.word_file import Change, WordFile
from crag.index.contract import EVERYTHING
from crag.papers.training.records import read_objects
from crag.text import words
from crag.text.language import language_of
from crag.text.sentences import split_sentences

STEMMERS = {
    "de": "german",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
    "ru": "russian",
}
LANGUAGES = ["en", *STEMMERS, "ja", "ko", "zh-cn"]
FIRST = 3
_NUMBER = re.compile(r"^[\d.]+\s*")

Sections = Mapping[str, tuple[str, str]]
"""Question and answer by the anchor, which all translations share."""


def sections(folder: Path, language: str) -> Sections:
    """Read a translation of the FAQ."""
    found = {}
    name = "debian-faq" if language == "en" else f"debian-faq-{language}"
    for file in sorted((folder / name).rglob(f"*.{language}.html")):
        tree = html.parse(str(file), html.HTMLParser(encoding="utf-8")).getroot()
        for section in tree.xpath("//div[@class='section']"):
            (head, *_) = section.xpath("./div[@class='titlepage']//*[@class='title']")
            paragraphs = section.xpath(
                "./p | ./div[not(@class='titlepage') and not(@class='section')]//p"
            )
            texts = [" ".join(one.text_content().split()) for one in paragraphs]
            if any(texts):
                question = _NUMBER.sub("", " ".join(head.text_content().split()))
                found[head.xpath(".//a/@id")[0]] = question, "\n\n".join(texts)
    return found


def found_first(known: Sections) -> float:
    """Return the share of questions whose answer is among the first found by words."""
    file = WordFile(None, "memory")
    chunks = [Document(answer, id=anchor) for anchor, (_, answer) in known.items()]
    file.write("", Change(added=chunks))
    hits = sum(anchor in file.find(known[anchor][0], FIRST, EVERYTHING) for anchor in known)
    file.close()
    return hits / len(known)


def cut_within(known: Sections, language: str) -> int:
    """Count the sentences that begin with a small letter or a digit, most of which are cuts."""
    pieces = [
        split_sentences(paragraph, language)
        for _, answer in known.values()
        for paragraph in answer.split("\n\n")
    ]
    begins = [piece[:1] for cut in pieces for piece in cut[1:]]
    return sum(one.islower() or one.isdigit() for one in begins)


def main(folder: Path) -> None:
    """Print one row for each language."""
    english = sections(folder, "en")
    print("language sections | language told: questions answers | cut within: as English, own | "
          f"first {FIRST} by words: as it is, own stems")  # fmt: skip
    for language in LANGUAGES:
        code = language[:2]
        known = {
            anchor: texts
            for anchor, texts in sections(folder, language).items()
            if code == "en" or (anchor in english and not set(texts) & set(english[anchor]))
        }
        told = [
            sum(language_of(texts[part]) == code for texts in known.values()) for part in (0, 1)
        ]
        cut = [cut_within(known, one) for one in ("en", code)]
        row = f"{language:6s} {len(known)} | {told} | {cut} | {found_first(known):.3f}"
        if name := STEMMERS.get(language):
            stem = snowballstemmer.stemmer(name).stemWord
            with mock.patch.object(words, "_stem", stem):
                row += f" {found_first(known):.3f}"
        print(row)


def mistaken(source: Path) -> tuple[int, int]:
    """Return how many English texts are taken for another language, and how many there are."""
    if source.is_dir():
        files = [one for one in source.rglob("*") if one.suffix in {".md", ".rst", ".txt"}]
        texts = [one.read_text("utf-8", "replace") for one in files]
    else:
        texts = [one.get("question") or one["text"] for one in read_objects(source)]
    return sum(language_of(text) not in {"", "en"} for text in texts), len(texts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--english", type=Path, nargs="+", default=[])
    asked = parser.parse_args()
    for one in asked.english:
        print(one.name, "taken for another language: {} of {}".format(*mistaken(one)))
    main(asked.folder)
