"""Draw the records of a generator's second round: relevant and irrelevant ones equally often.

    python papers/measurements/self_rag_draw.py records.jsonl --output drawn.jsonl [--count 5750]

Of the passages that an index finds for a question few answer it, so that most records say
`[Irrelevant]`, which is then learned for all. Records without a passage are 3 in a hundred: their
form was learned in the first round.
"""

import argparse
import random
from pathlib import Path

from self_rag_data import rows_of, write

from crag.reflection_tokens import RELEVANT

WITHOUT = 0.03
"""Share of records without a passage."""


def main() -> None:
    """Write the records, in random order."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=5750)
    given = parser.parse_args()
    rows = rows_of(given.records)
    draw = random.Random(3)  # noqa: S311 - a choice of examples, no secret
    draw.shuffle(rows)
    shown = [row for row in rows if "<paragraph>" in row["output"]]
    alone = [row for row in rows if "<paragraph>" not in row["output"]]
    relevant = [row for row in shown if RELEVANT in row["output"]]
    irrelevant = [row for row in shown if RELEVANT not in row["output"]]
    without = round(given.count * WITHOUT)
    half = (given.count - without) // 2
    drawn = [*relevant[:half], *irrelevant[: given.count - without - half], *alone[:without]]
    draw.shuffle(drawn)
    write(given.output, drawn)


if __name__ == "__main__":
    main()
