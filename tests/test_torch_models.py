"""Devices are found by name, and transformers is silenced while it loads and no longer."""

import logging
from collections.abc import Callable
from functools import partial

import pytest

from crag.errors import EvaluatorError, ModelError
from crag.torch_models import find_device, quietly


@pytest.mark.parametrize("name", ["tpu9", "cuda:99", "meta", "", "CPU"])
@pytest.mark.parametrize("refused", [EvaluatorError, partial(ModelError, "a-model", "unknown")])
def test_an_unknown_device_is_refused_in_the_callers_words(
    name: str, refused: Callable[[str], Exception]
) -> None:
    expected = type(refused(""))
    with pytest.raises(expected, match=rf"there is no device '{name}'; there are: cpu"):
        find_device(name, refused)


def test_without_a_name_the_fastest_device_there_is() -> None:
    import torch

    best = torch.device("cuda:0" if torch.cuda.device_count() else "cpu")
    assert find_device(None, EvaluatorError) == best
    assert find_device("cpu", EvaluatorError) == torch.device("cpu")


def states() -> tuple[bool, int]:
    from transformers.utils import logging as loading

    return loading.is_progress_bar_enabled(), loading.get_verbosity()


def fail_quietly() -> None:
    with quietly():
        raise OSError("{} {}".format(*states()))


@pytest.mark.parametrize("shown", [True, False])
def test_silence_ends_with_the_block_even_if_it_fails(*, shown: bool) -> None:
    from transformers.utils import logging as loading

    before = states()
    try:
        (loading.enable_progress_bar if shown else loading.disable_progress_bar)()
        loading.set_verbosity_info()
        with pytest.raises(OSError, match="False 50"):
            fail_quietly()
        assert states() == (shown, logging.INFO)
    finally:
        (loading.enable_progress_bar if before[0] else loading.disable_progress_bar)()
        loading.set_verbosity(before[1])
