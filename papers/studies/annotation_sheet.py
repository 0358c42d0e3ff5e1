"""A sheet for a person who judges Self-RAG's answers, and what came of it (Self-RAG, Fig. 4).

    python -m crag.papers.studies.annotation_sheet draw ROWS SHEET --variant "self-rag, as released"
    python -m crag.papers.studies.annotation_sheet count SHEET

`draw` writes 50 answers of a run with the passages that they cite, one line each, and three columns
to fill in: whether the answer is plausible and supported, as a reasonable reader would take it (yes
or no), whether the passage is relevant (relevant or irrelevant), and whether it supports the answer
(fully, partially or no). `count` prints how many answers are plausible and supported, and how often
the judge agrees with the model's IsRel and IsSup, which stand apart in ``SHEET.key``.
"""

import argparse
import csv
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crag.papers.bench.report import table
from crag.papers.bench.runner import RowFile
from crag.reflection_tokens import FULLY, IRRELEVANT, NO_SUPPORT, PARTIALLY, RELEVANT

SHOWN = ("id", "answer", "title", "text")
JUDGED = ("plausible and supported", "passage", "support")
_SAID = {
    RELEVANT: ("passage", "relevant"), IRRELEVANT: ("passage", "irrelevant"),
    FULLY: ("support", "fully"), PARTIALLY: ("support", "partially"), NO_SUPPORT: ("support", "no"),
}  # fmt: skip
_TOKEN = re.compile("|".join(map(re.escape, _SAID)))


def main() -> None:
    """Draw a sheet, or count what was filled in."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    drawing = commands.add_parser("draw")
    drawing.add_argument("rows", type=Path)
    drawing.add_argument("sheet", type=Path)
    drawing.add_argument("--variant", required=True)
    drawing.add_argument("--count", type=int, default=50, help="answers; 50 in the paper")
    commands.add_parser("count").add_argument("sheet", type=Path)
    given = parser.parse_args()
    if given.command == "count":
        print(agreement(given.sheet))
        return
    with RowFile(given.rows) as file:
        rows = [row for row in file.rows.values() if row["variant"] == given.variant]
    print(f"{draw(rows, given.sheet, given.count)} passages to judge in {given.sheet}")


def draw(rows: Sequence[Mapping[str, Any]], sheet: Path, count: int) -> int:
    """Write the passages of `count` answers, drawn at random; return how many there are."""
    usable = [row for row in rows if row["citations"]]
    chosen = random.Random(0).sample(usable, min(count, len(usable)))  # noqa: S311 - no secret
    lines = [line for row in chosen for line in _lines(row)]
    _write(sheet, [{**line, **dict.fromkeys(JUDGED, "")} for line in lines], SHOWN + JUDGED)
    _write(_key(sheet), lines, JUDGED[1:])
    return len(lines)


def _lines(row: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    said = [_SAID[token] for token in _TOKEN.findall(row["raw"])]
    for place, cited in enumerate(row["citations"]):
        line = {"id": row["id"], "answer": row["answer"]}
        line |= {"title": cited["source"]["title"], "text": cited["text"]}
        for name in JUDGED[1:]:
            words = [word for kind, word in said if kind == name]
            line[name] = words[place] if len(words) == len(row["citations"]) else ""
        yield line


def _key(sheet: Path) -> Path:
    return sheet.with_name(f"{sheet.name}.key")


def _write(path: Path, lines: Sequence[Mapping[str, str]], columns: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for line in lines:  # No spreadsheet takes a text after a space for a formula.
            guarded = ((name, f" {line[name]}") for name in SHOWN if line[name][:1] in "=+-@")
            writer.writerow({**line, **dict(guarded)})


def agreement(sheet: Path) -> str:
    """Return the table of what the judge said, and how often the model said the same."""
    judged, model = (
        list(csv.DictReader(path.read_text("utf-8-sig").splitlines(keepends=True)))
        for path in (sheet, _key(sheet))
    )
    plausible = [word == "yes" for line in judged if (word := line[JUDGED[0]].strip())]
    rows = [[JUDGED[0], f"{sum(plausible)} of {len(plausible)} are"]]
    for name in JUDGED[1:]:
        pairs = zip(judged, model, strict=True)
        same = [
            word == line[name] for one, line in pairs if (word := one[name].strip()) and line[name]
        ]
        rows.append([name, f"{sum(same)} of {len(same)} agree with the model"])
    return table(["", ""], rows)


if __name__ == "__main__":
    main()
