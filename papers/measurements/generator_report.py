"""The tables and the picture of what generators answered."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from generator_questions import Verdict, knows, verdict

from crag.asking.intervals import bootstrap, paired_difference
from crag.charts import BLUE, ORANGE, chart
from crag.papers.experiments.examples import Example
from crag.papers.experiments.report import table
from crag.papers.experiments.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RIGHT: tuple[Verdict, ...] = ("right", "other words")
RAG = "rag, ten documents"
"""The row that all others are compared with."""
DRAWN = ("no retrieval", RAG, "rag, best five", "crag", "crag, the paper's strips")
"""Rows of the picture."""
_SEED = 0
_TOKENS = ("input_tokens", "output_tokens")
_DPI, _BAR = 130, 0.8


class Answered(NamedTuple):
    """A question, and what a row of the experiment answered."""

    example: Example
    row: Row

    @property
    def verdict(self) -> Verdict:
        """The verdict of the answer."""
        return verdict(
            self.example, self.row["answer"], abstained=self.row["status"] == "abstained"
        )

    @property
    def good(self) -> bool:
        """Whether it is right, also in other words, or declines where there is no answer."""
        return self.verdict in (RIGHT if self.example.answers else ("declined",))


class Measured(NamedTuple):
    """All rows of one model."""

    model: str
    answered: list[Answered]


def written(measured: Sequence[Measured]) -> str:
    """Return all tables."""
    parts = ["## docs", verdicts(measured), "### Against RAG", differences(measured)]
    parts += ["### Where answerable questions failed", stages(measured)]
    return "\n\n".join(parts) + "\n"


def verdicts(measured: Sequence[Measured]) -> str:
    """Return the counts of verdicts of each model and row, with intervals of the shares."""
    names = (
        "model", "row", "answerable", "right by match", "right, also in other words",
        "right of those whose knowledge holds it", "wrong", "declined", "wordless", "unanswerable",
        "made up", "right or rightly declined", "sentences that nothing supports", "tokens in",
        "tokens out", "calls",
    )  # fmt: skip
    return table(names, (_verdicts(*each) for each in by_row(measured)))


def _verdicts(model: str, name: str, found: Sequence[Answered]) -> list[str]:
    able = [one for one in found if one.example.answers]
    unable = [one for one in found if not one.example.answers]
    said, there = (Counter(one.verdict for one in group) for group in (able, unable))
    known = [one for one in able if knows(one.example, one.row["knowledge"])]
    usage = [one.row["usage"] for one in found]
    told = [one.row.get("unsupported") for one in found]
    unsupported = [share for share in told if share is not None]
    return [
        model, name, str(len(able)),
        share(one.verdict == "right" for one in able),
        share(one.verdict in RIGHT for one in able),
        share(one.verdict in RIGHT for one in known),
        str(said["wrong"]), str(said["declined"]), str(said["wordless"] + there["wordless"]),
        str(len(unable)), share(one.verdict != "declined" for one in unable),
        share(one.good for one in found),
        f"{100 * fmean(unsupported):.0f} %" if unsupported else "-",
        *(f"{fmean(one.get(kind, 0) for one in usage):,.0f}" for kind in _TOKENS),
        f"{fmean(one.get('llm_calls', 0) for one in usage):.2f}",
    ]  # fmt: skip


def differences(measured: Sequence[Measured]) -> str:
    """Return what each row has more or less than RAG, question by question, in points."""
    names = ("model", "row", "questions", "right", "made up", "right or rightly declined")
    return table(names, _differences(measured))


def _differences(measured: Sequence[Measured]) -> Iterator[list[str]]:
    for one in measured:
        base = {each.example.id: each for each in one.answered if each.row["variant"] == RAG}
        for model, name, found in by_row([one]):
            pairs = [(each, base[each.example.id]) for each in found if each.example.id in base]
            if name == RAG or not pairs:
                continue
            able = [pair for pair in pairs if pair[0].example.answers]
            unable = [pair for pair in pairs if not pair[0].example.answers]
            yield [
                model, name, str(len(pairs)),
                gap(able, lambda each: each.verdict in RIGHT),
                gap(unable, lambda each: each.verdict != "declined"),
                gap(pairs, lambda each: each.good),
            ]  # fmt: skip


def stages(measured: Sequence[Measured]) -> str:
    """Count where the answerable questions of each row were lost."""
    names = ("not retrieved", "discarded", "dropped", "not said", "wrongly said", "right")
    rows = []
    for model, name, found in by_row(measured):
        counts = Counter(stage(one) for one in found if one.example.answers)
        rows.append([model, name, *(str(counts[each]) for each in names)])
    return table(("model", "row", *names), rows)


def stage(one: Answered) -> str:
    """Name the stage at which an answerable question was lost, or say that it is right.

    Discarded: the action is Incorrect. Not said: it declines, or writes no words.
    """
    if one.verdict in RIGHT:
        return "right"
    texts = "\n".join(document.page_content for document in one.example.documents)
    if not knows(one.example, texts):
        return "not retrieved"
    if not knows(one.example, one.row["knowledge"]):
        return "discarded" if one.row["action"] == "incorrect" else "dropped"
    return "not said" if one.verdict in {"declined", "wordless"} else "wrongly said"


def by_row(measured: Sequence[Measured]) -> Iterator[tuple[str, str, list[Answered]]]:
    """Yield model, row of the experiment, and what was answered."""
    for one in measured:
        for name in dict.fromkeys(each.row["variant"] for each in one.answered):
            yield one.model, name, [each for each in one.answered if each.row["variant"] == name]


def share(values: Iterable[bool]) -> str:
    """Write a share in per cent with its interval and count."""
    numbers = [float(value) for value in values]
    if not numbers:
        return "-"
    low, high = bootstrap(numbers, _SEED)
    count = f"{sum(numbers):.0f} of {len(numbers)}"
    return f"{count}, {100 * fmean(numbers):.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def gap(pairs: Sequence[tuple[Answered, Answered]], holds: Callable[[Answered], bool]) -> str:
    """Write the difference of two shares in points with its interval, bold where it is clear."""
    if not pairs:
        return "-"
    sides = [[float(holds(pair[side])) for pair in pairs] for side in (0, 1)]
    found = paired_difference(sides[0], sides[1], _SEED)
    told = f"{100 * found.mean:+.0f} ({100 * found.low:+.0f} to {100 * found.high:+.0f})"
    return f"**{told}**" if found.clear else told


def draw_verdicts(measured: Sequence[Measured], path: Path) -> None:
    """Draw right answers and made-up ones, of the questions that all rows of a model answered."""
    rows = [
        (f"{one.model}\n{name} ({len(found)})", found)
        for one in measured
        for name, found in _in_common(one)
        if any(not each.example.answers for each in found)
    ]
    with chart((7.0, 1.1 + 0.42 * len(rows)), dpi=_DPI, extra="bench") as figure:
        right, made_up = figure.subplots(1, 2, sharey=True)
        able = [[one for one in found if one.example.answers] for _, found in rows]
        unable = [[one for one in found if not one.example.answers] for _, found in rows]
        _bars(right, able, lambda one: one.verdict in RIGHT, BLUE)
        _bars(made_up, unable, lambda one: one.verdict != "declined", ORANGE)
        right.set(xlabel="right of the answerable (%)", xlim=(0, 100))
        made_up.set(xlabel="made up of the unanswerable (%)", xlim=(0, 100))
        right.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
        right.invert_yaxis()
        figure.savefig(path, metadata={"Software": None})


def _in_common(one: Measured) -> list[tuple[str, list[Answered]]]:
    rows = {name: found for _, name, found in by_row([one]) if name in DRAWN}
    common = set.intersection(*({each.example.id for each in found} for found in rows.values()))
    return [(name, [each for each in found if each.example.id in common])
            for name, found in rows.items()]  # fmt: skip


def _bars(
    axes: "Axes",
    groups: Sequence[Sequence[Answered]],
    holds: Callable[[Answered], bool],
    colour: str,
) -> None:
    for place, group in enumerate(groups):
        value, below, above = _share(group, holds)
        axes.barh(place, value, xerr=[[below], [above]], color=colour, alpha=0.75, height=_BAR)
    axes.grid(visible=False, axis="y")


def _share(
    group: Sequence[Answered], holds: Callable[[Answered], bool]
) -> tuple[float, float, float]:
    """Return a share in per cent, and how far its interval reaches below and above."""
    numbers = [100 * float(holds(one)) for one in group]
    if not numbers:
        return 0.0, 0.0, 0.0
    low, high = bootstrap(numbers, 0)
    value = fmean(numbers)
    return value, value - low, high - value
