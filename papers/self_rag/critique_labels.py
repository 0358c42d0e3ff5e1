"""Data for a critic from a judge, such as a chat model: label cases, and count what it refuses."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from crag.papers.loading.records import Ledger
from crag.papers.self_rag.critique_cases import LABELS, Case, LabelledCase

NO_LABEL = "the reply is no label of its kind"


class Judgement(NamedTuple):
    """What a judge said of one case."""

    label: str
    """Empty if the judge gave none that can be used."""
    problem: str = ""
    """Why there is no label, in a few words; equal problems are counted together."""


Judge = Callable[[Sequence[Case]], Sequence[Judgement]]
"""Judges cases and returns one judgement for each, in order."""


class Labelled(NamedTuple):
    """What a judge made of the cases."""

    cases: list[LabelledCase]
    rejected: dict[str, int]
    """Cases without a label, counted by reason."""
    agreement: dict[str, tuple[int, int]]
    """For each kind: cases whose label is that of the rule, and all labelled ones."""


def label_cases(  # noqa: PLR0913 - a run has these options
    cases: Sequence[LabelledCase],
    judge: Judge,
    ledger: Ledger,
    *,
    name: str,
    batch: int = 32,
    attempts: int = 3,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Labelled:
    """Replace the label of each case by that of a judge, `batch` cases at a time.

    A case without a usable label is asked for again, `attempts` times in all, and then rejected for
    the last reason. What the ledger holds is not asked for again.
    """
    waiting = [case for case in cases if case.key not in ledger.made]
    for start in range(0, len(waiting), batch):
        asked: Sequence[Case] = waiting[start : start + batch]
        for attempt in range(attempts):
            unusable = []
            for case, said in zip(asked, judge(asked) if asked else (), strict=True):
                if said.label in LABELS[case.kind]:
                    ledger.add(case.key, {"label": said.label})
                    continue
                unusable.append(case)
                if attempt == attempts - 1:
                    problem = said.problem or NO_LABEL
                    ledger.add(case.key, {"label": "", "problem": problem})
            asked = unusable
        progress(len(ledger.made), len(cases))
    return _labelled(cases, ledger, name)


def _labelled(cases: Sequence[LabelledCase], ledger: Ledger, name: str) -> Labelled:
    labelled: list[LabelledCase] = []
    rejected: Counter[str] = Counter()
    agreement: dict[str, tuple[int, int]] = {}
    for case in cases:
        made = ledger.made[case.key]
        if not made["label"]:
            rejected[made["problem"]] += 1
            continue
        labelled.append(case.model_copy(update={"label": made["label"], "source": name}))
        same, of = agreement.get(case.kind, (0, 0))
        agreement[case.kind] = same + (made["label"] == case.label), of + 1
    return Labelled(labelled, dict(rejected), agreement)
