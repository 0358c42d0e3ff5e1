"""The entry point of the installed command `crag`: the product's commands and the papers'."""

from crag.command import ended_in_one_line


def main() -> None:
    """Run the command line."""
    ended_in_one_line(_run)


def _run() -> None:
    from crag.papers.cli import main as run

    run()
