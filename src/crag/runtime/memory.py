"""Give memory that is free back to the system."""

import ctypes
import sys
from functools import cache


def give_back_memory() -> None:
    """Have the C library return the memory that is free within its heap; nothing elsewhere.

    glibc keeps what lies below memory that is still used. A server that now and then holds all of a
    large document would keep the most that any of them took. The call takes a few milliseconds.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> "ctypes._NamedFuncPointer | None":
    """Return glibc's function; other C libraries do not have it."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
