"""How long a service asks to wait."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from crag.errors import SearchError
from crag.web.retries import PassingSearchError, patiently, retry_after


@pytest.mark.parametrize(("header", "seconds"), [("0", 0), ("7", 7), (" 120 ", 120)])
def test_a_number_of_seconds(header: str, seconds: float) -> None:
    assert retry_after(header) == seconds


@pytest.mark.parametrize(
    "header", [None, "", "-1", "1.5", "soon", "٣", "9" * 400, "Fri, 99 Jan 2026 00:00:00 GMT"]
)
def test_what_is_neither_a_number_nor_a_date_asks_for_nothing(header: str | None) -> None:
    assert retry_after(header) is None


def test_a_date() -> None:
    now = datetime.now(UTC)
    later = retry_after(format_datetime(now + timedelta(seconds=100), usegmt=True))
    assert later is not None
    assert 95 < later <= 100
    assert retry_after(format_datetime(now - timedelta(seconds=100), usegmt=True)) == 0


class Service:
    """Fails with each error in turn, then answers."""

    def __init__(self, *errors: SearchError) -> None:
        self.errors, self.calls = list(errors), 0

    def ask(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def passing(wait: float | None = None) -> PassingSearchError:
    return PassingSearchError("Service", "quota", "later", wait)


def test_the_time_that_was_asked_for_is_waited() -> None:
    service, began = Service(passing(0.2)), datetime.now(UTC)
    assert patiently(1)(service.ask)() == "answer"
    assert (datetime.now(UTC) - began).total_seconds() >= 0.2
    assert service.calls == 2


def test_a_service_is_not_asked_before_its_time() -> None:
    service = Service(passing(2))
    with pytest.raises(PassingSearchError, match="asks to wait 2 s"):
        patiently(1)(service.ask)()
    assert service.calls == 1


def test_three_requests_are_the_most() -> None:
    service = Service(*[passing() for _ in range(5)])
    with pytest.raises(PassingSearchError):
        patiently(0.01)(service.ask)()
    assert service.calls == 3


def test_what_does_not_pass_is_not_tried_again() -> None:
    service = Service(SearchError("Service", "key", "wrong"))
    with pytest.raises(SearchError):
        patiently(0.01)(service.ask)()
    assert service.calls == 1
