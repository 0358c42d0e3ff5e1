"""The outcome of a pair: its output with tokens, in either form, or why there is none."""

from collections.abc import Iterator, Sequence

from crag.papers.self_rag.generator_data import (
    DataRules,
    Judging,
    Outcome,
    Outcomes,
    Pair,
    Rejected,
    Retrieve,
    reflective_output,
)
from crag.papers.self_rag.released_records import released_output


def one_by_one(critic: Judging, retrieve: Retrieve, rules: DataRules) -> Outcomes:
    """Return what makes the outcomes in this process, in order."""

    def outcomes(pairs: Sequence[Pair]) -> Iterator[tuple[int, Outcome]]:
        for place, pair in enumerate(pairs):
            yield place, outcome_of(pair, critic, retrieve, rules)

    return outcomes


def outcome_of(pair: Pair, critic: Judging, retrieve: Retrieve, rules: DataRules) -> Outcome:
    """Return the output of a pair with tokens and passages, or why there is none."""
    made = released_output if rules.form == "released" else reflective_output
    try:
        return {"output": made(pair, critic, retrieve, rules)}
    except Rejected as reason:
        return {"problem": str(reason)}
