"""Compare crag with the authors' own programs, run from their checkouts.

    python -m crag.papers.released.audit FOLDER [NAME …] [--runs N] [--record]

FOLDER has the checkouts, each under the name of its repository; nothing is copied from them.
Without a NAME every audit runs. A line is printed for each comparison: what is compared, in how
many runs both are equal, and of how many. The command ends with 1 if any differs. `--record` also
writes the tables of inputs and outputs that the tests compare with everywhere.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from crag.papers.released import audit_published, official_crag, official_self_rag
from crag.papers.released.official_program import Count


class Audit(NamedTuple):
    """What is compared with the programs of one checkout."""

    about: str
    compare: Callable[[Path, int | None], Iterator[Count]]
    """Of the folder, and the number of runs of each comparison; None: as many as the audit has."""
    record: Callable[[Path], str] | None = None
    """Writes its table, and says what was written."""


def main() -> int:
    """Run the audits that are named, print their counts, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(AUDITS))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in AUDITS]
    if unknown:
        parser.error(f"no such audit: {', '.join(unknown)}; there are {', '.join(AUDITS)}")
    audits = [AUDITS[name] for name in given.names or AUDITS]
    counts = [count for audit in audits for count in _printed(audit, given.folder, given.runs)]
    if given.record:
        for audit in audits:
            if audit.record is not None:
                print(audit.record(given.folder))
    return int(any(count.equal != count.runs for count in counts))


def _printed(audit: Audit, folder: Path, runs: int | None) -> Iterator[Count]:
    print(audit.about, flush=True)
    for count in audit.compare(folder, runs):
        failed = f", and in {count.failed} the official program fails" if count.failed else ""
        print(f"  {count.what}: equal in {count.equal} of {count.runs}{failed}", flush=True)
        yield count


def _self_rag(folder: Path, runs: int | None) -> Iterator[Count]:
    with official_self_rag.released(folder) as programs:
        for case in official_self_rag.CASES:
            answers, same, wanted = programs.answers(case), list[bool](), runs or case.runs
            seed = -1
            while len(same) < wanted:
                seed, answer = next(answers)
                if answer is not None:
                    same.append(answer == official_self_rag.ours(case, seed))
            yield Count(case.name, sum(same), wanted, seed + 1 - wanted)


def _crag(folder: Path, runs: int | None) -> Iterator[Count]:
    yield from official_crag.compare(folder, runs)
    yield from audit_published.compare(folder / "CRAG", runs)


RECORDED_SEEDS = 30


def _self_rag_record(folder: Path) -> str:
    lines = official_self_rag.record(folder, RECORDED_SEEDS)
    return f"{lines} answers recorded in {official_self_rag.RECORDED.name}"


def _crag_record(folder: Path) -> str:
    lines = official_crag.record(folder)
    return f"{lines} answers recorded in {official_crag.RECORDED.name}"


AUDITS: dict[str, Audit] = {
    "self-rag": Audit("Self-RAG's released inference", _self_rag, _self_rag_record),
    "crag": Audit("CRAG's released programs, and its files", _crag, _crag_record),
}

if __name__ == "__main__":
    sys.exit(main())
