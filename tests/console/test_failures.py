"""Failure groups: the newest failures are counted, with any filter."""

from datetime import datetime, timedelta

import pytest

from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import failure_groups
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")
S = DeliveryStatus
DAY = timedelta(hours=24)


@pytest.fixture
def now() -> datetime:
    """Store a failure in each of the last six hours, of alternating types; return the time."""
    now = utc_now().replace(microsecond=0)
    for hours in range(6):
        kind = ("payment_confirmed", "mfa_code")[hours % 2]
        factories.settled(S.FAILED, at=now - timedelta(hours=hours, minutes=1), type=kind)
    return now


def grouped(now: datetime, **match: str) -> failure_groups.FailureGroups:
    return failure_groups.group_failures(since=now - DAY, until=now, match=[match] if match else [])


def test_all_failures_are_counted(now: datetime) -> None:
    found = grouped(now)
    assert [group.count for group in found.groups] == [6]
    assert (found.counted_since, found.is_complete, found.has_previous) == (None, True, True)


def test_only_the_newest_failures_are_counted_beyond_the_cap(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_groups, "CAP", 3)
    found = grouped(now)
    assert [group.count for group in found.groups] == [3]
    assert found.counted_since == now - timedelta(hours=2, minutes=1)
    assert not found.is_complete


def test_filtered_groups_stay_within_the_cap(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_groups, "CAP", 3)
    with plans("notifications") as reads:
        found = grouped(now, type="mfa_code")
    assert [group.count for group in found.groups] == [1]
    assert found.counted_since == now - timedelta(hours=2, minutes=1)
    assert all(read.is_indexed and not read.sorts for read in reads)
    # The oldest counted failure is found in the index alone.
    assert [read.examined for read in reads] == [0, 3]
