"""How often tests repeat what they do: by `make test`, `make test-thorough`, `make torture`."""

from hypothesis import settings


def times(quick: int, thorough: int, full: int | None = None) -> int:
    """Return how often to repeat something in this run; `full` is for `make torture`."""
    match settings.get_current_profile_name():
        case "torture":
            return thorough if full is None else full
        case "thorough":
            return thorough
    return quick
