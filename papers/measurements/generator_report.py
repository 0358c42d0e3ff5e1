"""The tables of what generators answered: verdicts, intervals, stages of failure, and the curve."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from generator_questions import Verdict, knows, verdict

from crag.papers.experiments.examples import Example
from crag.papers.experiments.intervals import bootstrap
from crag.papers.experiments.paired import paired_difference
from crag.papers.experiments.report import table
from crag.papers.experiments.rows import Row
from crag.papers.experiments.units import ACCURACY

GENERATOR, DEGRADED = "generator", "generator_degraded"
RIGHT: tuple[Verdict, ...] = ("right", "other words")
AGAINST = {GENERATOR: "rag, unchecked", DEGRADED: "rag"}
"""The row that all others are compared with."""
WHOLE = 1.0
"""Stands for the share of questions with a relevant document where none is withheld."""
_SEED = 0
_TOKENS = ("input_tokens", "output_tokens")


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
    """All rows of one experiment, set and model."""

    experiment: str
    questions: str
    model: str
    answered: list[Answered]


def written(measured: Iterable[Measured]) -> str:
    """Return all tables."""
    found = list(measured)
    whole = [one for one in found if one.experiment == GENERATOR]
    parts = []
    for name in dict.fromkeys(one.questions for one in whole):
        same = [one for one in whole if one.questions == name]
        parts += [f"## {name}", verdicts(same), "### Against RAG", differences(same)]
        parts += ["### Where answerable questions failed", stages(same)]
    if curves := [one for one in found if one.experiment == DEGRADED]:
        parts += ["## Degraded retrieval", degraded(curves)]
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
        base = _of(one, AGAINST[one.experiment])
        for model, name, found in by_row([one]):
            pairs = [(each, base[each.example.id]) for each in found if each.example.id in base]
            if name == AGAINST[one.experiment] or not pairs:
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


def degraded(measured: Sequence[Measured]) -> str:
    """Return the share of right answers of each row, as relevant documents are withheld."""
    names = ("model", "row", "with a relevant document", "right", "wrong", "declined",
             "right, against RAG", "wrong, against RAG")  # fmt: skip
    return table(names, (row for one in measured for row in _degraded(one)))


def _degraded(one: Measured) -> Iterator[list[str]]:
    conditions = sorted({accuracy_of(each) for each in one.answered}, reverse=True)
    for name in dict.fromkeys(each.row["variant"] for each in one.answered):
        for accuracy in conditions:
            same = [each for each in one.answered if accuracy_of(each) == accuracy]
            found = [each for each in same if each.row["variant"] == name]
            base = {
                each.example.id: each for each in same if each.row["variant"] == AGAINST[DEGRADED]
            }
            pairs = [(each, base[each.example.id]) for each in found if each.example.id in base]
            if not found:
                continue
            yield [
                one.model, name, "as retrieved" if accuracy == WHOLE else f"{accuracy:.0%}",
                share(each.verdict in RIGHT for each in found),
                share(each.verdict == "wrong" for each in found),
                share(each.verdict in {"declined", "wordless"} for each in found),
                gap(pairs, lambda each: each.verdict in RIGHT),
                gap(pairs, lambda each: each.verdict == "wrong"),
            ]  # fmt: skip


def accuracy_of(one: Answered) -> float:
    """Return the share of questions with a relevant document, as the condition says."""
    return float(one.row["condition"].get(ACCURACY, WHOLE))


def by_row(measured: Sequence[Measured]) -> Iterator[tuple[str, str, list[Answered]]]:
    """Yield model, row of the experiment, and what was answered, under all conditions."""
    for one in measured:
        for name in dict.fromkeys(each.row["variant"] for each in one.answered):
            yield one.model, name, [each for each in one.answered if each.row["variant"] == name]


def _of(one: Measured, name: str) -> dict[str, Answered]:
    return {each.example.id: each for each in one.answered if each.row["variant"] == name}


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
