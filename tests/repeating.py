"""How often tests repeat what they do: in `make test`, and in `make test-nightly`."""

from hypothesis import settings


def times(quick: int, nightly: int) -> int:
    """Return how often to repeat something in this run."""
    return nightly if settings.get_current_profile_name() == "nightly" else quick
