"""What every training shares: the order, a run that goes on, and what is refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import CragError
from crag.papers.files import outside_faults, replacing
from crag.papers.training import TrainingRecipe, Visits, fixed_order, run_training


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=120), st.integers(1, 20), st.integers(),
    st.integers(1, 3),
)  # fmt: skip
def test_each_index_comes_once_a_pass_and_what_is_left_over_at_the_end(
    lengths: list[int], size: int, seed: int, passes: int
) -> None:
    order = fixed_order(lengths, size, seed, passes)
    assert Counter(order) == dict.fromkeys(range(len(lengths)), passes)
    assert order == fixed_order(lengths, size, seed, passes)
    whole = len(lengths) - len(lengths) % size
    for number in range(passes):
        assert len(set(order[number * whole : (number + 1) * whole])) == whole


def test_batches_hold_like_lengths() -> None:
    lengths = [number * 7 % 100 for number in range(100)]
    order = fixed_order(lengths, 10, 0)
    batches = [order[start : start + 10] for start in range(0, 100, 10)]
    spreads = [max(lengths[i] for i in one) - min(lengths[i] for i in one) for one in batches]
    assert max(spreads) < 20


def line_run(output: Path, data: str = "data", **changes: Any) -> tuple[float, int]:
    """Fit a line in 20 steps; return its slope and how many examples were read."""
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Line(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(1, 1)

        def forward(self, x: Any, y: Any) -> Any:
            return {"loss": ((self.line(x) - y) ** 2).mean()}

    model, read = Line(), []

    def example(index: int, place: int) -> tuple[float, float]:
        read.append(place)
        if place == changes.get("killed"):
            raise KeyboardInterrupt
        return float(index), 2.0 * index

    def collated(examples: Any) -> dict[str, Any]:
        x, y = (torch.tensor(one)[:, None] for one in zip(*examples, strict=True))
        return {"x": x, "y": y}

    recipe = TrainingRecipe(
        batch_size=2, learning_rate=0.05, save_steps=4, seed=changes.get("seed", 0)
    )
    visits = Visits(fixed_order([1] * 8, 2, recipe.seed, 5), example)
    run_training(
        recipe, model, visits, data, output, collator=collated, steps=20,
        lr_scheduler_type="linear",
    )  # fmt: skip
    return float(model.line.weight.detach()), len(read)


def test_a_killed_run_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole, read = line_run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        line_run(tmp_path / "killed", killed=25)
    resumed, again = line_run(tmp_path / "killed")
    assert resumed == whole
    assert again < read


@pytest.mark.parametrize("change", [{"seed": 1}, {"data": "other"}], ids=["recipe", "data"])
def test_another_run_in_the_same_folder_begins_anew(tmp_path: Path, change: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        line_run(tmp_path / "killed", killed=25)
    assert line_run(tmp_path / "killed", **change) == line_run(tmp_path / "whole", **change)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text("before")
    with pytest.raises(TypeError), replacing(path) as written:
        written.write_text(written.write_text("half"))  # type: ignore[arg-type]
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]
    with replacing(path) as written:
        written.write_text("after")
    assert [one.read_text() for one in tmp_path.iterdir()] == ["after"]


@pytest.mark.parametrize(
    ("error", "advice"),
    [(OSError(28, "No space left"), "Free space"), (OSError(13, "Denied"), "Make this place")],
)
def test_a_disk_that_fails_is_told_with_what_to_do(error: OSError, advice: str) -> None:
    with (
        pytest.raises(CragError, match=f"writing to out failed: .*{advice}"),
        outside_faults(Path("out")),
    ):
        raise error
