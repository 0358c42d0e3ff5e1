"""What the tests of training Self-RAG share: made-up articles, and their files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crag.papers.self_rag.tiny_base import tiny_language_model
from tests.trained import PLACES, TOPICS


def articles(count: int) -> list[dict[str, Any]]:
    """Return paragraphs, two of an article, each with a question that only it answers."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        topic, place = TOPICS[number // 2 % len(TOPICS)], PLACES[number // 2 % len(PLACES)]
        title = f"{topic.title()} of {place}"
        year = str(1700 + 7 * number)
        if number % 2 == 0:
            answer = year
            text = (
                f"The {topic} of {place} was built in {year} by the river. "
                "It stands near the old museum of the town. Nobody owns it today."
            )
            question = f"When was the {topic} of {place} built?"
        else:
            answer = f"a carpenter of the royal court and his {number} sons"
            text = (
                f"Rain fell on the {topic} for forty nights. It was repaired by {answer}. "
                f"Visitors of {place} see it in summer."
            )
            question = f"Who repaired the {topic} of {place}?"
        found = {"text": answer, "start": text.index(answer)}
        asked = {"question": question, "answers": [found]}
        rows.append({"title": title, "text": text, "questions": [asked]})
    return rows


def written(path: Path, rows: Sequence[object]) -> Path:
    """Write rows as JSONL and return the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tiny_base(folder: Path) -> Path:
    """Save a tiny language model that knows the words of the made-up articles."""
    texts = [row["text"] + row["questions"][0]["question"] for row in articles(80)]
    return tiny_language_model(folder, texts)
