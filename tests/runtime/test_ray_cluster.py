"""Tasks are handed out when there is room for them, and their results come in the wanted order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from crag.errors import CragError
from crag.runtime.ray_cluster import on_workers


class FakeRay:
    """Runs a task when its result is waited for: the newest first, unless one is named."""

    def __init__(self) -> None:
        self.pending: list[Any] = []
        self.most = 0

    def remote(self, **_: Any) -> Callable[[Callable[..., Any]], "Task"]:
        return lambda function: Task(self, function)

    def wait(self, references: Sequence[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        assert num_returns == 1
        self.pending.remove(references[-1])
        return [references[-1]], []

    def get(self, reference: Callable[[], Any]) -> Any:
        try:
            return reference()
        except CragError as error:
            raise self.exceptions.RayTaskError(error) from error

    class exceptions:  # noqa: N801, D106 - a module of Ray
        class RayError(Exception):
            """The root."""

        class RayTaskError(RayError):  # noqa: D106
            def __init__(self, cause: Exception) -> None:
                self.cause = cause


class Task:
    def __init__(self, ray: FakeRay, function: Callable[..., Any]) -> None:
        self.ray, self.function = ray, function

    def remote(self, *arguments: Any) -> Callable[[], Any]:
        def run() -> Any:
            return self.function(*arguments)

        self.ray.pending.append(run)
        self.ray.most = max(self.ray.most, len(self.ray.pending))
        return run


def squared(number: int) -> int:
    if number == 13:
        raise CragError("thirteen is refused")
    return number**2


def counted(taken: list[int]) -> Iterator[int]:
    for number in range(10):
        taken.append(number)
        yield number


def test_results_come_in_order_if_wanted() -> None:
    found = on_workers(FakeRay(), squared, range(7), 2, named=str, in_order=True)
    assert list(found) == [(number, number**2) for number in range(7)]


def test_results_come_as_they_are_ready_and_none_is_lost() -> None:
    found = list(on_workers(FakeRay(), squared, range(7), 2, named=str))
    assert found != sorted(found)
    assert sorted(found) == [(number, number**2) for number in range(7)]


def test_items_are_taken_when_there_is_a_worker_for_them() -> None:
    ray, taken = FakeRay(), list[int]()
    found = on_workers(ray, squared, counted(taken), 2, named=str, in_order=True)
    next(found)
    assert len(taken) == 4
    list(found)
    assert (len(taken), ray.most) == (10, 4)


def test_the_error_of_a_task_is_raised_as_it_is() -> None:
    with pytest.raises(CragError, match=r"^thirteen is refused$"):
        list(on_workers(FakeRay(), squared, [13], 2, named=str))


def test_an_item_that_ends_its_workers_is_named() -> None:
    class Dying(FakeRay):
        def get(self, reference: Callable[[], Any]) -> Any:
            raise self.exceptions.RayError(f"the worker of {reference} died")

    with pytest.raises(CragError, match="question 5 ended 6 Ray workers"):
        list(on_workers(Dying(), squared, [5], 2, named=lambda one: f"question {one}"))
