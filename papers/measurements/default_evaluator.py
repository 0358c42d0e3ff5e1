"""Write the training pairs of the shipped evaluator.

    python papers/measurements/default_evaluator.py DATA OUTPUT.jsonl

DATA is a folder with evaluator/train.jsonl (question, title, text, label, source) and, below qa/,
popqa_train.jsonl, selqa_sentences.jsonl and qed_sentences.jsonl (question, answers, documents).
What is made of them, so that a model learns whether a text holds what answers a question:

- PopQA: graded labels. The right page with the answer 1, without it 0.5, another page with it 0.2,
  else 0. Every text that names its title also stands without it.
- PopQA, parts: of the right page, one sentence with the answer (1), and up to three sentences in
  a row without it (0.5).
- SelQA, windows: three to six sentences in a row of one section; 1 if one of them answers.
- QED: each sentence of a paragraph; 1 if it is the one that answers.
- everything else of train.jsonl as it stands.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from crag.papers.training.pairs import RIGHT_PAGE, WRONG_PAGE, Pair
from crag.papers.training.records import read_objects
from crag.text.sentences import sentences_of

SEED = 0
WINDOW = (3, 6)
"""Fewest and most sentences of a window."""
PART = 3
"""Most sentences of a part without the answer."""
FEWEST_WORDS = 4
Row = dict[str, Any]


def main() -> None:
    """Write all pairs, one JSON object in a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    pairs = list(mixture(arguments.data, random.Random(SEED)))  # noqa: S311 - a choice, no secret
    lines = (json.dumps(pair._asdict(), ensure_ascii=False) for pair in pairs)
    arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{arguments.output}: {len(pairs):,} pairs")


def mixture(data: Path, draw: random.Random) -> Iterator[Pair]:
    """Yield the pairs of all sources."""
    trained = read_objects(data / "qa/popqa_train.jsonl")
    answers = {row["question"]: row["answers"] for row in trained}
    for row in read_objects(data / "evaluator/train.jsonl"):
        if row["source"] == "popqa":
            yield from popqa(row, answers[row["question"]], draw)
        else:
            yield Pair(row["question"], row["title"], row["text"], float(row["label"]))
    for row in read_objects(data / "qa/selqa_sentences.jsonl"):
        yield from windows(row, draw)
    for row in read_objects(data / "qa/qed_sentences.jsonl"):
        for found in row["documents"]:
            yield Pair(row["question"], found["title"], found["text"], float(found["answer"]))


def popqa(row: Row, answers: Sequence[str], draw: random.Random) -> Iterator[Pair]:
    """Yield one retrieved passage with its graded label, without its title, and in parts."""
    question, title, text = row["question"], row["title"], row["text"]
    held = holds(text, answers)
    right_page, another = (1.0, WRONG_PAGE) if held else (RIGHT_PAGE, 0.0)
    label = right_page if row["label"] else another
    yield Pair(question, title, text, label)
    if title.partition(" (")[0].lower() in text.lower():
        yield Pair(question, "", text, label)
    if row["label"] and held:
        yield from parts(question, title, text, answers, draw)


def parts(
    question: str, title: str, text: str, answers: Sequence[str], draw: random.Random
) -> Iterator[Pair]:
    """Yield a sentence with the answer, and some in a row without it."""
    sentences = [part for part in sentences_of(text) if len(part.split()) >= FEWEST_WORDS]
    with_answer = [part for part in sentences if holds(part, answers)]
    without = [part for part in sentences if not holds(part, answers)]
    if with_answer:
        yield Pair(question, title, draw.choice(with_answer), 1.0)
    if without:
        size = draw.randint(1, min(PART, len(without)))
        start = draw.randrange(len(without) - size + 1)
        yield Pair(question, title, " ".join(without[start : start + size]), RIGHT_PAGE)


def windows(row: Row, draw: random.Random) -> Iterator[Pair]:
    """Yield the sentences of one section as windows."""
    sentences, start = row["documents"], 0
    while start < len(sentences):
        window = sentences[start : start + draw.randint(*WINDOW)]
        start += len(window)
        if len(window) > 1:
            text = " ".join(found["text"] for found in window)
            answered = any(found["answer"] for found in window)
            yield Pair(row["question"], window[0]["title"], text, float(answered))


def holds(text: str, answers: Sequence[str]) -> bool:
    """Say whether any gold answer is a substring of `text` (the paper's match)."""
    return any(answer in text for answer in answers)


if __name__ == "__main__":
    main()
