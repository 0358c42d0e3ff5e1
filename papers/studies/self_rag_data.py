"""Choose what the small Self-RAG is trained on, and what it is compared on, from reading data.

    python -m crag.papers.studies.self_rag_data ../shared/data/reading --output runs/self-rag
        [--words 110] [--articles 110]
    python -m crag.papers.studies.self_rag_data records.jsonl --output drawn.jsonl [--records 5750]

Short paragraphs alone are trained on: on two cores time is what limits the training. A larger model
wants still shorter and fewer ones (`--words`, `--articles`, `--records`). The files:

critic.jsonl        paragraphs of 200 articles, for the critic's cases
pairs.jsonl         a third of the questions about `--articles` of them, for the generator's pairs
look_alikes.jsonl   questions that look answerable, of 8 articles, for the same
passages/           the paragraphs of the two files above, to be indexed
more_pairs.jsonl    two fifths of the questions about all paragraphs, for the second round
more_passages/      the paragraphs of that file and of look_alikes.jsonl, to be indexed
answerable.jsonl    paragraphs of other articles, to compare on
unanswerable.jsonl  questions that look answerable, of other articles, to compare on

From a file of records the second command draws those of the second round. Of the plain questions it
takes relevant and irrelevant ones equally often: few of the passages that an index finds for one
answer it, so that most records say `[Irrelevant]`, which is then learned for all. Statements,
choices and long answers come as they are: nearly all are `[Relevant]` and none declines, so they
would take the places of the plain questions that are answered. Records without a passage are 3 in a
hundred: their form was learned in the first round.
"""

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crag.papers.loading.records import read_objects
from crag.reflection_tokens import RELEVANT

CRITIC_ARTICLES, LOOK_ALIKE_ARTICLES = 200, 8
ASKED, MORE_ASKED = 0.35, 0.4
"""Shares of the questions that pairs are made from, in the first and in the second round."""
WITHOUT = 0.03
"""Share of the drawn records that have no passage."""
INPUT = "\n\n## Input:\n\n"
"""Stands between the instruction of a statement, a choice or a long answer and what it is about."""


def main() -> None:
    """Write the files and say how much they hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="folder of reading data, or file of records")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--words", type=int, default=110, help="most words of a paragraph")
    parser.add_argument("--articles", type=int, default=110, help="to make pairs from, of 200")
    parser.add_argument("--records", type=int, default=5750, help="to draw from a file")
    given = parser.parse_args()
    if given.source.is_dir():
        first_round(given.source, given.output, given.words, given.articles)
    else:
        write(given.output, second_round(read_objects(given.source), given.records))


def second_round(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return `count` of the records, in random order."""
    draw = random.Random(3)  # noqa: S311 - a choice of examples, no secret
    draw.shuffle(rows)
    shown = [row for row in rows if "<paragraph>" in row["output"]]
    alone = [row for row in rows if "<paragraph>" not in row["output"]]
    plain = [row for row in shown if INPUT not in row["instruction"]]
    others = [row for row in shown if INPUT in row["instruction"]]
    relevant = [row for row in plain if RELEVANT in row["output"]]
    irrelevant = [row for row in plain if RELEVANT not in row["output"]]
    without = round(count * WITHOUT)
    asked = round((count - without) * len(plain) / max(1, len(shown)))
    half = asked // 2
    chosen = [
        *relevant[:half], *irrelevant[: asked - half],
        *others[: count - without - asked], *alone[:without],
    ]  # fmt: skip
    draw.shuffle(chosen)
    return chosen


def first_round(reading: Path, output: Path, words: int, articles: int) -> None:
    """Write the files of a folder of reading data, from paragraphs of at most `words`."""
    train = of_length(read_objects(reading / "squad_train.jsonl"), words)
    look_alikes = read_objects(reading / "squad2_unanswerable.jsonl")
    chosen = drawn(titles_of(train), CRITIC_ARTICLES, seed=0)
    for_critic = [row for row in train if row["title"] in set(chosen)]
    for_pairs = drawn(chosen, articles, seed=1)
    paragraphs = [row for row in for_critic if row["title"] in set(for_pairs)]
    seen = set(drawn(titles_of(look_alikes), LOOK_ALIKE_ARTICLES, seed=0))
    trained = of_length([row for row in look_alikes if row["title"] in seen], words)
    write(output / "critic.jsonl", for_critic)
    write(output / "look_alikes.jsonl", trained)
    for name, rows, share in (("", paragraphs, ASKED), ("more_", train, MORE_ASKED)):
        texts = {row["text"]: row["title"] for row in (*rows, *trained)}
        write(output / f"{name}pairs.jsonl", asked(rows, share))
        write(
            output / f"{name}passages" / "paragraphs.jsonl",
            [{"title": title, "text": text} for text, title in texts.items()],
        )
    write(output / "answerable.jsonl", read_objects(reading / "squad_dev.jsonl"))
    write(output / "unanswerable.jsonl", [row for row in look_alikes if row["title"] not in seen])


def asked(rows: Sequence[dict[str, Any]], share: float) -> list[dict[str, Any]]:
    """Return the paragraphs with a share of their questions, those that have any left."""
    draw = random.Random(5)  # noqa: S311 - a choice of examples, no secret
    fewer = [
        {**row, "questions": [one for one in row["questions"] if draw.random() < share]}
        for row in rows
    ]
    return [row for row in fewer if row["questions"]]


def of_length(rows: Iterable[dict[str, Any]], words: int) -> list[dict[str, Any]]:
    """Return the paragraphs of at most `words`, short enough to be trained on."""
    return [row for row in rows if len(row["text"].split()) <= words]


def titles_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the titles of the articles, in order."""
    return sorted({row["title"] for row in rows})


def drawn(titles: Sequence[str], count: int, seed: int) -> list[str]:
    """Return `count` of the titles."""
    ordered = sorted(titles)
    random.Random(seed).shuffle(ordered)  # noqa: S311 - a choice of examples, no secret
    return ordered[:count]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write JSONL and say how many lines."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    print(f"{path}: {len(rows):,}")


if __name__ == "__main__":
    main()
