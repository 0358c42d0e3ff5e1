"""A sheet for people who judge Self-RAG's answers, and what they agree on (Self-RAG, Fig. 4).

    python -m crag.papers.studies.annotation_sheet draw runs/popqa/rows.jsonl --data FILE
        --task popqa --variant "self-rag, as released" --output sheet.csv [--count 50] [--seed 0]
    python -m crag.papers.studies.annotation_sheet count sheet.csv [another.csv …]

`draw` writes answers of a run with the passages that they cite, one line each, and three empty
columns; what the model said of them is kept apart in ``sheet.key.csv``. Give a copy of the sheet to
each judge. `count` prints how many answers are plausible and supported, how often the judges agree
with the model's IsRel and IsSup, and, for several sheets, how often with each other.
"""

import argparse
import csv
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from crag.errors import DataError
from crag.papers.bench.examples import TASKS, Example
from crag.papers.bench.report import table
from crag.papers.bench.runner import Row, RowFile
from crag.papers.loading.read import load_examples
from crag.reflection_tokens import FULLY, IRRELEVANT, NO_SUPPORT, PARTIALLY, RELEVANT

JUDGED = {
    "plausible and supported": ("yes", "no"),
    "passage": ("relevant", "irrelevant"),
    "support": ("fully", "partially", "no"),
}
"""The columns to fill in, with what may stand there. The first one is about the whole answer, as a
reasonable reader would take it; the others judge the passage for the question, and the answer by
the passage alone."""
SHOWN, _TOLD = ("number", "question", "answer", "title", "text"), ("number", "passage", "support")
_SAID = {
    RELEVANT: "relevant", IRRELEVANT: "irrelevant",
    FULLY: "fully", PARTIALLY: "partially", NO_SUPPORT: "no",
}  # fmt: skip
_TOKEN = re.compile("|".join(map(re.escape, _SAID)))


def main() -> None:
    """Draw a sheet, or count what was filled in."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    drawing = commands.add_parser("draw")
    drawing.add_argument("rows", type=Path)
    drawing.add_argument("--data", type=Path, required=True)
    drawing.add_argument("--task", choices=TASKS, required=True)
    drawing.add_argument("--variant", required=True)
    drawing.add_argument("--output", type=Path, required=True)
    drawing.add_argument("--count", type=int, default=50, help="answers; 50 in the paper")
    drawing.add_argument("--seed", type=int, default=0)
    counting = commands.add_parser("count")
    counting.add_argument("sheets", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "count":
        print(agreement(given.sheets))
        return
    examples = {one.id: one for one in load_examples(given.data, given.task).examples}
    with RowFile(given.rows) as file:
        rows = [row for row in file.rows.values() if row["variant"] == given.variant]
    lines = draw(rows, examples, given.count, given.seed)
    if not lines:
        raise DataError(given.rows, f"no row of {given.variant!r} cites a passage")
    write(lines, given.output)
    print(f"{len(lines)} passages to judge in {given.output}; {key(given.output)} has the labels")


def draw(
    rows: Sequence[Row], examples: Mapping[str, Example], count: int, seed: int
) -> list[dict[str, str]]:
    """Return what is shown of `count` answers drawn by `seed`, and what the model said of it."""
    usable = [row for row in rows if row["id"] in examples and row["citations"]]
    order = random.Random(seed)  # noqa: S311 - a choice of examples, no secret
    chosen = order.sample(usable, min(count, len(usable)))
    lines = [line for row in chosen for line in _lines(row, examples[row["id"]].question)]
    return [{"number": str(number), **line} for number, line in enumerate(lines, start=1)]


def _lines(row: Row, question: str) -> Iterator[dict[str, str]]:
    said = [_SAID[token] for token in _TOKEN.findall((row["reflection"] or {}).get("raw", ""))]
    shown = {"question": question, "answer": row["answer"]}
    for place, cited in enumerate(row["citations"]):
        line = shown | {"title": cited["source"]["title"], "text": cited["text"]}
        for name in ("passage", "support"):
            words = [word for word in said if word in JUDGED[name]]
            line[name] = words[place] if len(words) == len(row["citations"]) else ""
        yield line


def write(lines: Sequence[Mapping[str, str]], path: Path) -> None:
    """Write the sheet with empty columns, and the model's words beside it."""
    for place, columns in ((path, (*SHOWN, *JUDGED)), (key(path), _TOLD)):
        with place.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            hidden = dict.fromkeys(JUDGED, "") if place == path else {}
            for line in lines:
                writer.writerow({name: _plain(text) for name, text in {**line, **hidden}.items()})


def key(sheet: Path) -> Path:
    """Return where the model's words are kept."""
    return sheet.with_suffix(".key.csv")


def _plain(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f" {text}" if text.startswith(("=", "+", "-", "@")) else text


def agreement(sheets: Sequence[Path]) -> str:
    """Return the table of what the judges said; the key lies beside the first sheet.

    Raises:
        DataError: a cell holds something else than its column allows.
    """
    judged, model = [_read(path) for path in sheets], _read(key(sheets[0]))
    rows = []
    for name in JUDGED:
        cells = [{number: line[name] for number, line in sheet.items()} for sheet in judged]
        filled = [word for sheet in cells for word in sheet.values() if word]
        said = {number: line.get(name, "") for number, line in model.items()}
        between = _agreed(list(combinations(cells, 2)))
        if any(said.values()):
            rows.append([name, "-", _agreed([(sheet, said) for sheet in cells]), between])
        else:
            rows.append([name, _share([word == "yes" for word in filled]), "-", between])
    return table(["", "yes", "agrees with the model", "judges agree"], rows)


def _agreed(pairs: Sequence[tuple[Mapping[str, str], Mapping[str, str]]]) -> str:
    """Return how often two say the same, of the cells that both filled in."""
    return _share([
        first[number] == second[number]
        for first, second in pairs
        for number in first
        if first[number] and second.get(number)
    ])  # fmt: skip


def _share(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}" if held else "-"


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = list(csv.DictReader(file))
    except OSError as error:
        raise DataError(path, str(error.strerror)) from error
    for place, line in enumerate(lines, start=2):
        for name, allowed in JUDGED.items():
            word = line[name] = line.get(name, "").strip().lower()
            if word and word not in allowed:
                choice = ", ".join(allowed)
                raise DataError(path, f"{name!r} is {word!r}; write one of {choice}", place)
    return {line["number"]: line for line in lines}


if __name__ == "__main__":
    main()
