"""What every model that transformers loads has in common: its device, and silence meanwhile."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def find_device(name: str | None, refused: Callable[[str], Exception]) -> "torch.device":
    """Return the device called `name`; without a name CUDA where there is one, else the CPU.

    "cuda" is the first such device. If there is none of that name here, what `refused` makes of
    the problem is raised; the problem names those there are.
    """
    import torch

    here = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    wanted = {None: here[:2][-1], "cuda": "cuda:0"}.get(name, name)
    if wanted not in here:
        raise refused(f"there is no device {name!r}; there are: {', '.join(here)}")
    return torch.device(wanted)


@contextmanager
def quietly() -> Iterator[None]:
    """Silence what transformers draws and reports while it loads, then restore it.

    What matters of it becomes an error of whoever loads.
    """
    from transformers.utils import logging as loading

    shown, verbosity = loading.is_progress_bar_enabled(), loading.get_verbosity()
    loading.disable_progress_bar()  # type: ignore[no-untyped-call]
    loading.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        loading.set_verbosity(verbosity)
        if shown:
            loading.enable_progress_bar()  # type: ignore[no-untyped-call]
