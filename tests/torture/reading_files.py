"""Read every file of a folder in a process of its own, and print what became of each."""

import json
import re
import sys
import time
from pathlib import Path

from crag.documents.loaders import load
from crag.documents.sources import Unusable


def main() -> None:
    """Print one JSON object: by name the outcome, the seconds, and the most memory so far."""
    told = {}
    for path in sorted(Path(sys.argv[1]).iterdir()):
        start = time.process_time()
        texts, reasons = [], []
        for loaded in load(path):
            if isinstance(loaded, Unusable):
                reasons.append(loaded.reason)
            else:
                texts.append(f"{loaded.title}\n{loaded.text}")
        told[path.name] = {
            "text": "\n".join(texts)[:2_000_000],
            "reasons": reasons,
            "seconds": time.process_time() - start,
            "megabytes": most_memory(),
        }
    sys.stdout.write(json.dumps(told))


def most_memory() -> int:
    """Return the most megabytes that this process had in memory.

    getrusage counts those of the process that started this one too.
    """
    status = Path("/proc/self/status").read_text("ascii")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) // 1024


main()
