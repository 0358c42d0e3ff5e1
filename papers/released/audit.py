"""Compare crag with the authors' own programs, run from their checkouts.

    python -m crag.papers.released.audit FOLDER [NAME …] [--runs N] [--record]

FOLDER has the checkouts, each under the name of its repository; nothing is copied from them.
Without a NAME every audit runs. A line is printed for each comparison: what is compared, in how
many runs both are equal, and of how many. The command ends with 1 if any differs. `--record` also
writes the tables of inputs and outputs that the tests compare with everywhere.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from crag.papers.released import official_crag, official_self_rag
from crag.papers.released.official import compare, record

AUDITS: dict[str, Any] = {"self-rag": official_self_rag, "crag": official_crag}
"""Modules with ``CASES``, ``RECORDED``, and ``released``, which loads the programs."""


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
    differs = False
    for name in given.names or AUDITS:
        audit = AUDITS[name]
        print(f"{name}: the released programs", flush=True)
        with audit.released(given.folder) as programs:
            for count in compare(programs, audit.CASES, given.runs):
                failed = f", and in {count.failed} the official program fails"
                told = f"  {count.what}: equal in {count.equal} of {count.runs}"
                print(told + (failed if count.failed else ""), flush=True)
                differs |= count.equal != count.runs
            if given.record:
                lines = record(programs, audit.CASES, audit.RECORDED)
                print(f"{lines} answers recorded in {audit.RECORDED.name}")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
