"""WhatsApp service windows: recording inbound messages, and open windows."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from pymongo.errors import PyMongoError

from domain.addresses import fold_phone
from recipients import service_windows
from recipients.models import ServiceWindow
from recipients.service_windows import MARGIN, RETENTION, WINDOW, open_windows, record_inbound
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import CUT, LOST_ANSWER, Trouble, fail_commands
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")
ADA, BOB = "+351912345678", "+447700900999"
MINUTE, MILLISECOND = timedelta(minutes=1), timedelta(milliseconds=1)


def record(*phones: str, at: datetime = NOON, now: datetime | None = None) -> None:
    record_inbound([(phone, at) for phone in phones], now=now or at)


def find_open(*phones: str, at: datetime = NOON + MINUTE) -> frozenset[str]:
    return open_windows(phones, now=at)


def last_inbound_of(phone: str = ADA) -> datetime:
    return ServiceWindow.objects.get(pk=phone).last_inbound_at


def test_inbound_message_opens_the_window() -> None:
    record(ADA)
    assert find_open(ADA, BOB) == {ADA}


@pytest.mark.parametrize(
    ("age", "is_open"),
    [
        (timedelta(0), True),
        (WINDOW - MARGIN - MILLISECOND, True),
        *((age, False) for age in (WINDOW - MARGIN, WINDOW, RETENTION)),
    ],
)
def test_window_is_open_for_a_day_less_a_minute(age: timedelta, is_open: bool) -> None:
    record(ADA)
    assert (find_open(ADA, at=NOON + age) == {ADA}) is is_open


def test_no_phones_make_no_query() -> None:
    with plans("service_windows") as found:
        assert find_open() == frozenset()
        record()
    assert found == []


def test_batch_is_one_read_by_ids() -> None:
    record(*[f"+4477009{number:05}" for number in range(2_000)])
    with plans("service_windows") as found:
        known = find_open(*[f"+4477009{number:05}" for number in range(1_950, 2_050)])
    (plan,) = found
    assert len(known) == 50
    assert plan.is_by_id
    assert plan.examined <= 100


def test_inbound_record_expires_after_a_month() -> None:
    record(ADA)
    stored = ServiceWindow.objects.get()
    assert (stored.phone, stored.last_inbound_at, stored.expires_at) == (
        ADA,
        NOON,
        NOON + RETENTION,
    )


def test_later_message_extends_the_window() -> None:
    record(ADA)
    record(ADA, at=NOON + MINUTE)
    assert last_inbound_of() == NOON + MINUTE
    assert ServiceWindow.objects.get().expires_at == NOON + MINUTE + RETENTION


@pytest.mark.parametrize("earlier", [MINUTE, WINDOW, timedelta(days=7)])
def test_older_message_does_not_shorten_the_window(earlier: timedelta) -> None:
    record(ADA)
    record(ADA, at=NOON - earlier, now=NOON)
    assert last_inbound_of() == NOON


def test_latest_of_several_messages_counts() -> None:
    times = [NOON, NOON + 2 * MINUTE, NOON + MINUTE]
    record_inbound([(ADA, at) for at in times], now=NOON + WINDOW)
    assert last_inbound_of() == NOON + 2 * MINUTE


def test_future_message_counts_as_now() -> None:
    record(ADA, at=NOON + WINDOW, now=NOON)
    record(BOB, at=NOON, now=NOON)
    record_inbound([(BOB, NOON + WINDOW), (BOB, NOON + 2 * WINDOW)], now=NOON + MINUTE)
    assert (last_inbound_of(ADA), last_inbound_of(BOB)) == (NOON, NOON + MINUTE)


def test_repeated_recording_changes_nothing() -> None:
    for _ in range(3):
        record(ADA, BOB)
    assert ServiceWindow.objects.count() == 2
    assert find_open(ADA, BOB) == {ADA, BOB}


def test_known_numbers_are_one_write_by_ids() -> None:
    phones = [f"+4477009{number:05}" for number in range(200)]
    record(*phones)
    with plans("service_windows") as found:
        record(*phones[:100], at=NOON + MINUTE)
    (plan,) = found
    assert plan.is_by_id
    assert plan.examined <= 100
    assert last_inbound_of(phones[0]) == NOON + MINUTE
    assert last_inbound_of(phones[100]) == NOON


def test_known_and_new_numbers_are_recorded_together() -> None:
    record(ADA)
    record(ADA, BOB, at=NOON + MINUTE)
    assert (last_inbound_of(ADA), last_inbound_of(BOB)) == (NOON + MINUTE, NOON + MINUTE)


def test_number_like_an_expression_is_text() -> None:
    record("$last_inbound_at", ADA)
    assert find_open("$last_inbound_at") == {"$last_inbound_at"}


@pytest.mark.parametrize(
    ("dialled", "reported"),
    [("+5511987654321", "+551187654321"), ("+525512345678", "+5215512345678")],
    ids=["Brazil", "Mexico"],
)
def test_older_whatsapp_spelling_is_the_same_number(dialled: str, reported: str) -> None:
    record(reported)
    assert find_open(dialled, reported) == {dialled, reported}
    record(dialled, at=NOON + MINUTE)
    assert ServiceWindow.objects.count() == 1


@pytest.mark.parametrize(
    "phone",
    [
        "+551132345678",
        "+5511932345678",
        "+5511",
        "+52155123456",
        "+52155123456789",
        "+447700900999",
        "+351912345678",
        "+15215551234",
        "",
        "5511987654321",
    ],
)
def test_other_number_has_one_spelling(phone: str) -> None:
    assert fold_phone(phone) == phone


def test_two_spellings_in_one_webhook_are_one_number() -> None:
    record_inbound([("+551187654321", NOON), ("+5511987654321", NOON - MINUTE)], now=NOON)
    assert last_inbound_of("+551187654321") == NOON


def test_concurrent_insert_is_tolerated(monkeypatch: pytest.MonkeyPatch) -> None:
    add = service_windows._add_missing

    def racing(latest: dict[str, datetime]) -> None:
        add(dict.fromkeys(latest, NOON - MINUTE))
        add(latest)

    monkeypatch.setattr(service_windows, "_add_missing", racing)
    record(ADA)
    assert last_inbound_of() == NOON


def test_concurrent_recordings_keep_the_latest() -> None:
    times = [NOON + number * MINUTE for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: record(ADA, BOB, at=at), times[::-1]))
    assert (last_inbound_of(ADA), last_inbound_of(BOB)) == (times[-1], times[-1])
    assert ServiceWindow.objects.count() == 2


@pytest.mark.parametrize(
    ("command", "failure"), [("update", CUT), ("insert", CUT), ("insert", LOST_ANSWER)]
)
def test_failed_recording_raises_and_can_be_repeated(command: str, failure: Trouble) -> None:
    with fail_commands(command, "service_windows", failure, times=2), pytest.raises(PyMongoError):
        record(ADA)
    record(ADA)
    assert last_inbound_of() == NOON
    assert ServiceWindow.objects.count() == 1
