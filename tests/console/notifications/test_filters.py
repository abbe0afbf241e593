"""Filters by status: the delivery states that match each status of a notification."""

from dataclasses import dataclass
from itertools import product

from console.notifications.filters import OVERALL_STATUSES
from domain.states import DeliveryStatus, NotificationStatus, overall_status

S = DeliveryStatus


@dataclass(frozen=True)
class _State:
    status: DeliveryStatus
    attempt_count: int
    is_waiting: bool


def test_a_delivery_status_limits_the_overall_status() -> None:
    singles = [_State(s, n, w) for s, n, w in product(S, (0, 1), (True, False))]
    seen: dict[DeliveryStatus, set[NotificationStatus]] = {status: set() for status in S}
    for states in [
        *product(singles),
        *product(singles, singles),
        *product(singles, singles, singles),
    ]:
        overall = overall_status(states)
        for state in states:
            seen[state.status].add(overall)
    for status, possible in OVERALL_STATUSES.items():
        assert seen[status] <= possible, status
    # Each entry of the table excludes something.
    for status in set(S) - set(OVERALL_STATUSES):
        assert len(seen[status]) > len(NotificationStatus) - 3
