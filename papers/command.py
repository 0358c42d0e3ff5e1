"""The entry point of the installed command `crag`: the product's commands and the papers'."""

from crag import command


def main() -> None:
    """Run the command line."""
    command.main("crag.papers.cli")
