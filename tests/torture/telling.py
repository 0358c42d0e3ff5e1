"""What `make test-nightly` tells of its counts; `make test` does not show it."""

import sys


def tell(line: str) -> None:
    """Print one line."""
    sys.stdout.write(f"\n{line}\n")
