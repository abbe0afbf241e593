"""Delivery states, their transitions, the overall status, and docs/reference/states.md."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from domain.states import (
    OPEN,
    PHASES,
    SUCCEEDED,
    TRANSITIONS,
    DeliveryStatus,
    NotificationStatus,
    Phase,
    overall_status,
)
from tests.support.tables import each_case

S, N = DeliveryStatus, NotificationStatus


@dataclass(frozen=True)
class State:
    status: DeliveryStatus
    attempt_count: int = 0
    is_waiting: bool = False

    def __str__(self) -> str:
        tried = "-tried" if self.attempt_count else ""
        return f"{self.status}{tried}{'-waiting' if self.is_waiting else ''}"


WAITING = State(S.PENDING, is_waiting=True)
DUE = State(S.PENDING)
WAITING_AGAIN = State(S.PENDING, attempt_count=1, is_waiting=True)
DUE_AGAIN = State(S.PENDING, attempt_count=2)
ENDED = [State(status) for status in S if status not in OPEN]

EVERY = [
    WAITING,
    DUE,
    WAITING_AGAIN,
    DUE_AGAIN,
    State(S.SENDING, attempt_count=1),
    State(S.UNKNOWN, attempt_count=1),
    *ENDED,
]

UP_TO_THREE = [
    states
    for count in (1, 2, 3)
    for states in itertools.combinations_with_replacement(EVERY, count)
]


def expected(states: Sequence[State]) -> NotificationStatus:
    """Return the overall status by the documented rules, of which the first match applies."""
    every = {state.status for state in states}
    counted = every - {S.CANCELLED, S.SUPPRESSED, S.MERGED}
    succeeded = counted & SUCCEEDED
    rules = [
        (N.RETRYING, WAITING_AGAIN in states or DUE_AGAIN in states),
        (N.PROCESSING, bool(counted & {S.SENDING, S.UNKNOWN})),
        (N.QUEUED, DUE in states),
        (N.CREATED, WAITING in states),
        (N.MERGED, not counted and S.MERGED in every),
        (N.SUPPRESSED, every == {S.SUPPRESSED}),
        (N.CANCELLED, not counted),
        (N.PARTIALLY_DELIVERED, bool(succeeded) and succeeded != counted),
        (N.SENT, S.SENT in succeeded),
        (N.DELIVERED, bool(succeeded)),
        (N.FAILED, S.FAILED in counted),
        (N.EXPIRED, True),
    ]
    return next(status for status, holds in rules if holds)


@each_case("states", UP_TO_THREE)
def test_overall_status_follows_the_deliveries(states: Sequence[State]) -> None:
    assert overall_status(states) is expected(states)


def test_delivery_order_does_not_matter() -> None:
    for states in UP_TO_THREE:
        assert len({overall_status(order) for order in itertools.permutations(states)}) == 1


def test_notification_is_unfinished_while_a_delivery_is_open() -> None:
    unfinished = {N.CREATED, N.QUEUED, N.PROCESSING, N.RETRYING}
    for states in UP_TO_THREE:
        is_open = any(state.status in OPEN for state in states)
        assert (overall_status(states) in unfinished) == is_open


def test_every_status_is_reachable_from_pending() -> None:
    reached, border = {S.PENDING}, {S.PENDING}
    while border:
        border = set().union(*(TRANSITIONS[status] for status in border)) - reached
        reached |= border
    assert reached == set(TRANSITIONS) == set(S)


@each_case("status", [S.READ, S.EXPIRED, S.CANCELLED, S.MERGED])
def test_final_status_has_no_transition(status: DeliveryStatus) -> None:
    assert not TRANSITIONS[status]


@each_case(
    "status, before",
    [
        *((status, S.PENDING) for status in (S.SENDING, S.EXPIRED, S.CANCELLED, S.SUPPRESSED)),
        (S.UNKNOWN, S.SENDING),
    ],
)
def test_status_has_one_predecessor(status: DeliveryStatus, before: DeliveryStatus) -> None:
    assert [state for state in S if status in TRANSITIONS[state]] == [before]


@each_case("before", [S.SENT, S.DELIVERED, S.READ])
@each_case("after", [S.PENDING, S.SENDING, S.UNKNOWN])
def test_sent_delivery_is_never_sent_again(before: DeliveryStatus, after: DeliveryStatus) -> None:
    assert after not in TRANSITIONS[before]


@each_case("status", sorted(OPEN))
@each_case("reported", [S.SENT, S.DELIVERED, S.READ, S.FAILED])
def test_receipt_can_precede_the_settlement(
    status: DeliveryStatus, reported: DeliveryStatus
) -> None:
    assert reported in TRANSITIONS[status]


def test_success_only_rises() -> None:
    rising = [S.SENT, S.DELIVERED, S.READ]
    assert set(rising) == SUCCEEDED
    for index, status in enumerate(rising):
        assert TRANSITIONS[status] & SUCCEEDED == set(rising[index + 1 :])


def test_suppressed_delivery_is_only_reopened() -> None:
    assert TRANSITIONS[S.SUPPRESSED] == {S.PENDING}


def test_every_status_has_a_phase_and_every_phase_a_status() -> None:
    assert set(PHASES) == set(N)
    assert set(PHASES.values()) == set(Phase)


def test_failure_is_reopened_or_overruled() -> None:
    assert TRANSITIONS[S.FAILED] >= {S.PENDING, *SUCCEEDED}


PAGE = Path(settings.BASE_DIR, "docs", "reference", "states.md").read_text(encoding="utf-8")
NOWHERE = "\N{EN DASH}"


def steps() -> dict[str, str]:
    """Return the documented next statuses of each status, as text."""
    table = PAGE.partition("| from | to |")[2].partition("\n\n")[0]
    rows = (line.strip("|").split("|") for line in table.splitlines() if line.startswith("| "))
    return {before.strip(): after.strip() for before, after in rows}


@each_case("status", list(DeliveryStatus))
def test_page_lists_every_transition(status: DeliveryStatus) -> None:
    after = steps()[status]
    written = set() if after == NOWHERE else set(after.split(", "))
    assert written == {transition.value for transition in TRANSITIONS[status]}


def test_diagram_has_only_listed_transitions() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+)", PAGE, re.MULTILINE)
    assert len(arrows) > 10
    for before, after in arrows:
        assert DeliveryStatus(after) in TRANSITIONS[DeliveryStatus(before)]


@each_case("status", list(NotificationStatus))
def test_page_explains_every_overall_status(status: NotificationStatus) -> None:
    assert re.search(rf"^\| {status.value} \|", PAGE, re.MULTILINE)
