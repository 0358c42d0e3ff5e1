"""How often tests repeat what they do; `make test-thorough` repeats it in full."""

from hypothesis import settings


def times(quick: int, thorough: int) -> int:
    """Return how often to repeat something in this run."""
    return thorough if settings.get_current_profile_name() == "thorough" else quick
