"""The send window: room for requests in flight, which follows what the provider takes."""

import itertools
import threading
from collections.abc import Sequence
from functools import partial

import pytest

from delivery import window
from delivery.results import TargetResult
from delivery.window import INITIAL_SIZE, STARTED_AHEAD, SendWindow
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import Outcome
from tests.support.tables import each_case
from tests.support.threads import at_once
from tests.support.waiting import LIMIT, until

MAXIMUM = 64


def results(*outcomes: Outcome) -> Sequence[TargetResult]:
    return [
        TargetResult(
            device_id=None, outcome=outcome, started_at=NOON, finished_at=NOON, duration_ms=1
        )
        for outcome in outcomes
    ]


def ignore() -> None:
    """Send a request that the test does not look at."""


def window_of(maximum: int, *, started_ahead: int = 0) -> SendWindow:
    clock = itertools.count(1.0, 0.001).__next__
    return SendWindow(maximum, clock=clock, started_ahead=started_ahead)


def round_trip(
    window: SendWindow, *, count: int | None = None, outcome: Outcome | None = None
) -> int:
    """Send as many requests as there is room for; return how many."""
    started_at = window.clock()
    taken = window.acquire(count or window.maximum, timeout=0)
    sent = results(*[outcome or scripted.accepted()] * taken)
    window.admit(taken, ignore)
    window.release(taken, results=sent, started_at=started_at)
    return taken


@pytest.fixture
def full() -> SendWindow:
    """Return a window that has grown to its maximum."""
    window = window_of(MAXIMUM)
    while window.size < MAXIMUM:
        round_trip(window)
    return window


def test_window_doubles_with_each_round_trip_up_to_its_maximum() -> None:
    window = window_of(MAXIMUM)
    assert [round_trip(window) for _ in range(5)] == [INITIAL_SIZE, 20, 40, MAXIMUM, MAXIMUM]


def test_window_grows_by_each_answer_while_more_is_to_be_sent() -> None:
    window = window_of(MAXIMUM)
    started_at = window.clock()
    window.acquire(INITIAL_SIZE, timeout=0)
    assert window.try_acquire(1) == 0
    window.admit(INITIAL_SIZE, ignore)
    for _ in range(INITIAL_SIZE):
        window.release(1, results=results(scripted.accepted()), started_at=started_at)
    assert window.size == 2 * INITIAL_SIZE


def test_window_that_was_full_and_enough_does_not_grow() -> None:
    window = window_of(MAXIMUM)
    for _ in range(20):
        round_trip(window, count=INITIAL_SIZE)
    assert window.size == INITIAL_SIZE


def test_unused_window_does_not_grow() -> None:
    window = window_of(MAXIMUM)
    for _ in range(20):
        round_trip(window, count=1)
    assert window.size == INITIAL_SIZE


@pytest.mark.parametrize(
    ("outcome", "share"),
    [(scripted.rate_limited(), 0.9), (scripted.timeout(), 0.5), (scripted.unreachable(), 0.5)],
)
def test_window_shrinks_when_the_provider_slows_down(
    full: SendWindow, outcome: Outcome, share: float
) -> None:
    round_trip(full, outcome=outcome)
    assert full.size == int(MAXIMUM * share)


@pytest.mark.parametrize("outcome", [scripted.refused(), scripted.provider_error()])
def test_other_errors_leave_the_window_as_it_is(full: SendWindow, outcome: Outcome) -> None:
    round_trip(full, outcome=outcome)
    assert full.size == MAXIMUM


def test_window_grows_slowly_above_the_size_of_the_last_slowdown(full: SendWindow) -> None:
    """By two requests if it is small, so that few are refused at the provider's limit."""
    round_trip(full, outcome=scripted.timeout())
    for expected in (34, 36, 38):
        round_trip(full)
        assert full.size == expected


def test_large_window_grows_by_a_share_of_itself() -> None:
    large = window_of(1_024)
    while large.size < 1_024:
        round_trip(large)
    round_trip(large, outcome=scripted.timeout())
    round_trip(large)
    assert large.size == 512 + 16


def test_requests_in_flight_together_shrink_the_window_once(full: SendWindow) -> None:
    started_at = full.clock()
    taken = full.acquire(MAXIMUM, timeout=0)
    full.admit(taken, ignore)
    for _ in range(taken):
        full.release(1, results=results(scripted.rate_limited()), started_at=started_at)
    assert full.size == int(MAXIMUM * 0.9)


def test_window_is_never_closed(full: SendWindow) -> None:
    for _ in range(20):
        round_trip(full, outcome=scripted.timeout())
    assert round_trip(full) == 1


def test_window_starts_again_after_a_minute_without_success(
    full: SendWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "RECENT_SUCCESS", 0.0)
    assert round_trip(full) == INITIAL_SIZE


def test_full_window_has_no_room(full: SendWindow) -> None:
    assert full.acquire(MAXIMUM, timeout=0) == MAXIMUM
    assert full.acquire(1, timeout=0) == 0
    assert full.try_acquire(1) == 0


def test_room_is_waited_for(full: SendWindow) -> None:
    full.acquire(MAXIMUM, timeout=0)
    full.admit(MAXIMUM, ignore)
    taken: list[int] = []
    waiting = threading.Thread(target=lambda: taken.append(full.acquire(20, timeout=LIMIT)))
    waiting.start()
    for _ in range(20):
        full.release(1, results=results(scripted.accepted()), started_at=full.clock())
    waiting.join(LIMIT)
    assert taken == [20]


def test_batch_waits_for_a_quarter_of_the_window_at_most(full: SendWindow) -> None:
    """Otherwise a small window would be used in rounds, each after the slowest request."""
    full.acquire(MAXIMUM, timeout=0)
    taken: list[int] = []
    wait = partial(full.acquire, MAXIMUM, timeout=10 * LIMIT)
    threading.Thread(target=lambda: taken.append(wait()), daemon=True).start()
    until(lambda: full._waiting == 1)
    full.adjust(-MAXIMUM // 4)
    until(lambda: taken == [MAXIMUM // 4])


def test_room_goes_to_the_batch_that_waits(full: SendWindow) -> None:
    """Otherwise a batch that has requests in flight would take each room that its answers free."""
    full.acquire(MAXIMUM, timeout=0)
    taken: list[int] = []
    waiting = threading.Thread(target=lambda: taken.append(full.acquire(20, timeout=LIMIT)))
    waiting.start()
    until(lambda: full._waiting == 1)
    full.adjust(-1)
    assert full.try_acquire(1) == 0
    full.adjust(-19)
    waiting.join(LIMIT)
    assert taken == [20]


def test_single_delivery_enters_a_full_window(full: SendWindow) -> None:
    full.acquire(MAXIMUM, timeout=0)
    full.adjust(1)
    assert full.taken == MAXIMUM + 1
    full.adjust(-1)
    assert full.try_acquire(1) == 0


def test_threads_never_have_more_in_flight_than_the_size(full: SendWindow) -> None:
    highest: list[int] = []

    def send() -> None:
        for _ in range(200):
            taken = full.acquire(10, timeout=LIMIT)
            highest.append(full.taken)
            full.admit(taken, ignore)
            full.release(
                taken, results=results(*[scripted.accepted()] * taken), started_at=full.clock()
            )

    at_once(*[send] * 16)
    assert max(highest) <= MAXIMUM
    assert full.taken == 0


@each_case(
    "outcome, seconds",
    [
        (scripted.channel_unavailable(), 0.5),
        (scripted.rate_limited(retry_after=60), 0.5),
        (scripted.rate_limited(retry_after=0.2), 0.2),
        (scripted.rate_limited(), 0.0),
        (scripted.channel_unavailable(scope="ios"), 0.0),
        (scripted.timeout(), 0.0),
    ],
)
def test_window_has_no_room_until_the_pause_that_the_provider_asked_for_is_stored(
    outcome: Outcome, seconds: float
) -> None:
    now = 100.0
    window = SendWindow(MAXIMUM, clock=lambda: now)
    round_trip(window, count=1, outcome=outcome)
    assert (window.is_paused, window.try_acquire(1) == 0) == (seconds > 0, seconds > 0)
    now += seconds
    assert (window.is_paused, window.try_acquire(1)) == (False, 1)


def test_room_is_waited_for_until_the_end_of_a_pause() -> None:
    window = SendWindow(MAXIMUM)
    round_trip(window, count=1, outcome=scripted.rate_limited(retry_after=0.05))
    assert window.acquire(5, timeout=LIMIT) == 5


class TestStartedAhead:
    """Started requests wait in the window, and are sent as soon as an answer makes room."""

    def test_eight_requests_more_than_the_window_are_started(self) -> None:
        window = window_of(MAXIMUM, started_ahead=STARTED_AHEAD)
        while window.size < MAXIMUM:
            round_trip(window)
        assert window.acquire(2 * MAXIMUM, timeout=0) == MAXIMUM + 8

    def test_at_most_as_many_as_the_window_has(self) -> None:
        window = window_of(2, started_ahead=STARTED_AHEAD)
        assert window.acquire(MAXIMUM, timeout=0) == 4

    @pytest.fixture
    def sent(self) -> list[int]:
        return []

    @pytest.fixture
    def busy(self, sent: list[int]) -> SendWindow:
        """Return a window in which two requests are in flight and two wait."""
        window = window_of(2, started_ahead=2)
        window.acquire(4, timeout=0)
        for number in range(4):
            window.admit(1, partial(sent.append, number))
        return window

    def test_full_window_admits_one_request_per_answer_in_order(
        self, busy: SendWindow, sent: list[int]
    ) -> None:
        assert sent == [0, 1]
        busy.release(1, results=results(scripted.refused()), started_at=busy.clock())
        assert sent == [0, 1, 2]
        busy.release(1, results=results(scripted.refused()), started_at=busy.clock())
        assert sent == [0, 1, 2, 3]

    def test_smaller_window_admits_no_request_until_it_has_room(
        self, busy: SendWindow, sent: list[int]
    ) -> None:
        busy.release(1, results=results(scripted.timeout()), started_at=busy.clock())
        assert (busy.size, sent) == (1, [0, 1])
        busy.release(1, results=results(scripted.timeout()), started_at=busy.clock())
        assert sent == [0, 1, 2]

    def test_single_delivery_is_sent_at_once(self, busy: SendWindow, sent: list[int]) -> None:
        busy.adjust(1)
        busy.admit(1, partial(sent.append, 9), at_once=True)
        assert sent == [0, 1, 9]

    def test_waiting_request_lets_the_window_grow(self) -> None:
        window = window_of(MAXIMUM, started_ahead=STARTED_AHEAD)
        started_at = window.clock()
        window.acquire(INITIAL_SIZE + 1, timeout=0)
        for _ in range(INITIAL_SIZE + 1):
            window.admit(1, ignore)
        window.release(1, results=results(scripted.accepted()), started_at=started_at)
        assert window.size == INITIAL_SIZE + 1
