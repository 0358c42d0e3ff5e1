"""Texts as they are, for comparisons with programs that do not disarm them."""

from collections.abc import Iterator
from contextlib import contextmanager

from crag.text.untrusted import DISARMS


@contextmanager
def left_armed() -> Iterator[None]:
    """Let `neutral` return texts as they are in the ``with`` block, also in tasks started there.

    Only for benchmarks that compare with programs which do so: a text can then act as the model.
    """
    token = DISARMS.set(False)
    try:
        yield
    finally:
        DISARMS.reset(token)
