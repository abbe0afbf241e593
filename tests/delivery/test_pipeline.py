"""The pipeline with the real store: claim, deferral, sending, and settlement."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from types import FrameType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from bson import ObjectId

from delivery import eligibility, pipeline, send_loop
from delivery.pipeline import MAX_BATCH
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from domain.channels import Channel
from domain.content import Content, Recipient
from domain.retry import MAX_REFUSED_DELAY
from domain.states import Priority
from domain.time import utc_now
from notifications.content import rendering
from notifications.content.reminders import event_variables
from notifications.store import acceptance, leases, recovery
from notifications.store.acceptance import Accepted
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points, event_loop, process
from notifyproject.platform.crash_points import Boundary
from providers.contract import NotAttemptedError, SendRequest
from recipients.models import PersonalQuietHours
from recipients.models import Recipient as Person
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted, new, suppress
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import Outcome, ScriptedProvider, Slow, rate_limited
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def dispatch(
    *ids: ObjectId,
    channel: Channel = EMAIL,
    at: datetime = NOON,
    clock: Callable[[], datetime] | None = None,
) -> BatchReport:
    return pipeline.dispatch(SendingRuntime(), ids, channel=channel, clock=clock or (lambda: at))


def outcome(notification_id: ObjectId, channel: Channel = EMAIL) -> tuple[str, str | None]:
    delivery = factories.delivery(factories.read(notification_id), channel)
    return delivery["status"], delivery.get("failure_code")


def many(count: int, **fields: Any) -> Sequence[ObjectId]:
    results = acceptance.accept([new(**fields) for _ in range(count)], now=NOON)
    return [result.document["_id"] for result in results if isinstance(result, Accepted)]


def test_due_delivery_is_sent_and_settled(fcm: ScriptedProvider) -> None:
    notification_id = accepted()["_id"]
    report = dispatch(notification_id)
    assert (report.claimed, report.counts, report.wakeups) == (1, {"sent": 1}, [])
    assert outcome(notification_id) == ("sent", None)
    assert [o.recipient for o in fcm.seen] == ["ada@example.com"]


def test_a_mail_on_its_way_is_in_five_records(fcm: ScriptedProvider) -> None:
    """A push has a sixth: the attempt at each device."""
    made: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "__init__":
            kind = type(next(iter(frame.f_locals.values()), None))
            if kind.__module__.startswith(("delivery.", "notifications.store.", "providers.")):
                made[kind.__name__] += 1

    ids = many(20)
    event_loop.call(lambda: sys.setprofile(count))
    sys.setprofile(count)
    try:
        assert dispatch(*ids).counts == {"sent": 20}
    finally:
        sys.setprofile(None)
        event_loop.call(lambda: sys.setprofile(None))
    of_each = {name for name, number in made.items() if number >= len(ids)}
    parts = {"AttemptReference", "SendTarget", "RenderedMessage", "Message", "_NextState"}
    assert of_each - parts == {
        "ClaimedDelivery",
        "PreparedDelivery",
        "SendRequest",
        "TargetResult",
        "Settlement",
    }


def test_repeated_id_is_sent_once(fcm: ScriptedProvider) -> None:
    notification_id = accepted()["_id"]
    dispatch(*[notification_id] * 5)
    dispatch(notification_id)
    assert len(fcm.seen) == 1


def test_large_wakeup_is_sent_in_batches(fcm: ScriptedProvider) -> None:
    assert dispatch(*many(MAX_BATCH + 20)).counts == {"sent": MAX_BATCH + 20}
    assert len({o.reference for o in fcm.seen}) == MAX_BATCH + 20


def test_failed_delivery_gets_a_wakeup_when_it_is_due(fcm: ScriptedProvider) -> None:
    fcm.behave = lambda _outbound: rate_limited(retry_after=7_200)
    notification_id = accepted()["_id"]
    report = dispatch(notification_id)
    (wakeup,) = report.wakeups
    assert report.counts == {"pending": 1}
    assert (wakeup.notification_id, wakeup.channel) == (notification_id, EMAIL)
    assert (wakeup.priority, wakeup.at) == ("normal", NOON + 120 * MINUTE + MAX_REFUSED_DELAY)
    assert outcome(notification_id) == ("pending", "rate_limited")


@pytest.mark.parametrize("channel", [PUSH, WHATSAPP])
def test_channel_without_a_provider_fails(channel: Channel) -> None:
    notification_id = accepted(channels=[channel])["_id"]
    assert dispatch(notification_id, channel=channel).counts == {"failed": 1}
    assert outcome(notification_id, channel) == ("failed", "channel_unavailable")


def test_scheduled_in_app_is_delivered_when_due() -> None:
    notification_id = accepted(channels=[IN_APP], send_at=NOON + MINUTE)["_id"]
    assert dispatch(notification_id, channel=IN_APP).claimed == 0
    assert dispatch(notification_id, channel=IN_APP, at=NOON + MINUTE).counts == {"delivered": 1}


def test_poison_message_is_quarantined_and_the_others_are_sent(fcm: ScriptedProvider) -> None:
    bad, good = accepted()["_id"], accepted()["_id"]
    at = NOON
    for _ in range(3):
        factories.claim(bad, at=at)
        at += LEASE
    assert dispatch(bad, good, at=at).counts == {"failed": 1, "sent": 1}
    assert outcome(bad) == ("failed", "quarantined")
    assert len(fcm.seen) == 1


def test_poison_candidates_are_sent_one_at_a_time(fcm: ScriptedProvider) -> None:
    """One poison candidate may end the worker, and the others must not be quarantined with it."""
    lost, fresh = many(3), many(2)
    leases.claim(ids=lost, channel=EMAIL, worker="lost", now=NOON)
    claims_held: list[int] = []
    fresh_ids, together = (
        {str(notification_id) for notification_id in fresh},
        threading.Barrier(len(fresh), timeout=LIMIT),
    )

    def record_claims(outbound: Any) -> Any:
        count_claims()
        if outbound.notification_id in fresh_ids:
            # Neither ends before both have counted.
            together.wait()
        return scripted.accepted()

    def count_claims() -> None:
        documents = [factories.read(item) for item in (*lost, *fresh)]
        deliveries = [factories.delivery(document) for document in documents]
        ours = [delivery["claim"] for delivery in deliveries if delivery["claim"]]
        claims_held.append(sum(claim["worker"] != "lost" for claim in ours))

    fcm.behave = record_claims
    assert dispatch(*lost, *fresh, at=NOON + LEASE).counts == {"sent": 5}
    assert {o.notification_id for o in fcm.seen[:2]} == fresh_ids
    assert claims_held == [2, 2, 1, 1, 1]


def test_stopping_worker_leaves_poison_candidates_to_others(fcm: ScriptedProvider) -> None:
    lost = many(3)
    leases.claim(ids=lost, channel=EMAIL, worker="lost", now=NOON)
    process.request_shutdown()
    try:
        assert dispatch(*lost, at=NOON + LEASE).claimed == 0
    finally:
        process.clear_shutdown()


def test_quiet_hours_defer_a_delivery_unless_critical(fcm: ScriptedProvider) -> None:
    Person.objects.create(
        user_id="ada",
        created_at=NOON,
        updated_at=NOON,
        quiet_hours=PersonalQuietHours(enabled=True, start="11:00", end="13:00"),
        timezone="UTC",
    )
    normal, urgent = accepted()["_id"], accepted(priority=Priority.CRITICAL)["_id"]
    report = dispatch(normal, urgent)
    assert report.counts == {"pending": 1, "sent": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [NOON + 60 * MINUTE]
    assert outcome(normal) == ("pending", "quiet_hours")
    assert len(fcm.seen) == 1


def test_address_suppressed_since_acceptance_gets_nothing(fcm: ScriptedProvider) -> None:
    notification_id = accepted()["_id"]
    suppress("ada@example.com")
    assert dispatch(notification_id).counts == {"suppressed": 1}
    assert outcome(notification_id) == ("suppressed", "suppressed")
    assert fcm.seen == []


@pytest.mark.parametrize(
    ("type_", "preferences", "status"),
    [
        ("payment_confirmed", {"payment_confirmed": {"muted": True}}, "suppressed"),
        ("payment_confirmed", {"transactional": {"muted_channels": ["email"]}}, "suppressed"),
        ("payment_confirmed", {"transactional": {"muted_channels": ["push"]}}, "sent"),
        ("mfa_code", {"transactional": {"muted": True}, "alert": {"muted": True}}, "sent"),
    ],
)
def test_preference_changed_since_acceptance_is_applied(
    fcm: ScriptedProvider, type_: str, preferences: dict[str, Any], status: str
) -> None:
    notification_id = accepted(type=type_)["_id"]
    Person.objects.create(user_id="ada", preferences=preferences, created_at=NOON, updated_at=NOON)
    assert dispatch(notification_id).counts == {status: 1}


def test_expired_delivery_is_not_sent(fcm: ScriptedProvider) -> None:
    notification_id = accepted(expires_at=NOON + MINUTE)["_id"]
    assert dispatch(notification_id, at=NOON + MINUTE).counts == {"expired": 1}
    assert fcm.seen == []


@pytest.mark.usefixtures("one_at_a_time")
def test_delivery_that_expires_during_its_batch_is_not_sent(fcm: ScriptedProvider) -> None:
    """A batch is sent in rounds, each of which a slow provider can delay by fifteen seconds."""
    slow = Slow(takes=15 * SECOND, now=NOON)
    fcm.behave = slow
    ids = many(3, expires_at=NOON + 10 * SECOND)
    dispatch(*ids, clock=slow.clock)
    assert len(fcm.seen) == 1
    assert sorted(outcome(notification_id)[0] for notification_id in ids)[-1] == "sent"


def test_delivery_that_expires_during_its_downloads_is_not_sent(fcm: ScriptedProvider) -> None:
    notification_id = accepted(expires_at=NOON + SECOND)["_id"]
    fcm.behave = lambda _outbound: NotAttemptedError()
    report = dispatch(notification_id)
    assert [wakeup.at for wakeup in report.wakeups] == [NOON]
    assert outcome(notification_id) == ("pending", None)
    dispatch(notification_id, at=NOON + SECOND)
    assert outcome(notification_id) == ("expired", "expired")


def test_unsent_delivery_with_a_short_lease_is_not_unknown(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process was frozen after the start of the attempt and before its first byte left."""
    notification_id = accepted(type="marketing")["_id"]
    clock = scripted.frozen_after_start(monkeypatch, at=NOON, for_=LEASE)
    dispatch(notification_id, clock=clock)
    assert fcm.seen == []
    recovery.expire_leases(now=NOON + 2 * LEASE)
    assert outcome(notification_id)[0] != "unknown"


LISBON, NEW_YORK, AUCKLAND = "Europe/Lisbon", "America/New_York", "Pacific/Auckland"
SAO_PAULO = "America/Sao_Paulo"
NIGHT = {"enabled": True, "start": "22:00", "end": "07:00"}


def move_to(zone: str) -> None:
    """Register Ada in a time zone, with quiet hours from 22:00 to 07:00."""
    ada = {"is_active": True, "preferences": {}, "quiet_hours": NIGHT, "timezone": zone}
    collection("recipients").update_one({"_id": "ada"}, {"$set": ada}, upsert=True)


def seven_in(zone: str, *, after: datetime) -> datetime:
    """Return the next 07:00 of a time zone."""
    there = after.astimezone(ZoneInfo(zone))
    seven = datetime.combine(there.date(), time(7), there.tzinfo)
    later = datetime.combine(there.date() + timedelta(days=1), time(7), there.tzinfo)
    return min(item for item in (seven, later) if item > there).astimezone(UTC)


def dispatch_at(
    notification_id: ObjectId, *, at: datetime
) -> tuple[str, str | None, datetime | None]:
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=EMAIL, clock=lambda: at)
    stored = factories.delivery(factories.read(notification_id))
    return stored["status"], stored.get("failure_code"), stored.get("next_attempt_at")


def test_delivery_waits_for_the_morning_in_the_new_time_zone(fcm: ScriptedProvider) -> None:
    move_to(LISBON)
    notification_id = accepted()["_id"]
    move_to(AUCKLAND)
    morning = seven_in(AUCKLAND, after=NOON)
    assert dispatch_at(notification_id, at=NOON) == ("pending", "quiet_hours", morning)
    assert fcm.seen == []


@pytest.mark.parametrize(
    ("given", "moved_to", "written"),
    [
        ((), SAO_PAULO, "17:00 (America/Sao_Paulo)"),
        # The request named the zone, nothing changed, or the registry has no zone of use.
        (("timezone",), SAO_PAULO, "20:00 (Europe/Lisbon)"),
        ((), LISBON, "20:00 (Europe/Lisbon)"),
        ((), None, "20:00 (Europe/Lisbon)"),
        ((), "Mars/Olympus", "20:00 (Europe/Lisbon)"),
    ],
)
@pytest.mark.parametrize("is_reminder", [True, False])
def test_text_is_written_on_the_clock_of_where_the_recipient_is_now(
    fcm: ScriptedProvider,
    given: tuple[str, ...],
    moved_to: str | None,
    written: str,
    is_reminder: bool,
) -> None:
    start = NOON + timedelta(hours=8)
    data = {"contest_name": "Cup", **event_variables(start, at=NOON - timedelta(hours=3))}
    reader = Recipient(email="ada@example.com", timezone=LISBON, given=given)
    subject, body = rendering.render_text(name="contest_reminder", data=data, recipient=reader)
    content = Content(
        subject=subject,
        body=body,
        template_id="contest_reminder",
        template_version=0,
        event_at=start if is_reminder else None,
    )
    move_to(LISBON)
    notification_id = accepted(
        type="contest_reminder", user_id="ada", recipient=reader, content=content, data=data
    )["_id"]
    changed = {"timezone": moved_to, "quiet_hours": {"enabled": False}}
    collection("recipients").update_one({"_id": "ada"}, {"$set": changed})
    assert dispatch_at(notification_id, at=NOON)[0] == "sent"
    (request,) = fcm.seen
    hours = "8 hours" if is_reminder else "11 hours"
    assert request.message.subject == f"Cup starts in {hours}"
    assert f"starts in {hours}, at {written} on " in request.message.text
    assert written.partition(" ")[0] in str(request.message.html)


def test_deferred_delivery_is_deferred_again_in_a_new_time_zone(fcm: ScriptedProvider) -> None:
    move_to(LISBON)
    night = datetime.combine(NOON.date(), time(23), ZoneInfo(LISBON)).astimezone(UTC)
    notification_id = accepted(created_at=night)["_id"]
    morning = seven_in(LISBON, after=night)
    assert dispatch_at(notification_id, at=night) == ("pending", "quiet_hours", morning)
    move_to(NEW_YORK)
    later = seven_in(NEW_YORK, after=morning)
    assert dispatch_at(notification_id, at=morning) == ("pending", "quiet_hours", later)
    assert fcm.seen == []
    assert dispatch_at(notification_id, at=later)[0] == "sent"


def test_delivery_that_expires_in_the_new_quiet_hours_expires(fcm: ScriptedProvider) -> None:
    move_to(LISBON)
    notification_id = accepted(expires_at=NOON + timedelta(hours=1))["_id"]
    move_to(AUCKLAND)
    assert dispatch_at(notification_id, at=NOON)[:2] == ("expired", "quiet_hours")
    assert fcm.seen == []


def test_batch_waits_for_the_rate_and_claims_no_delivery_again(
    fcm: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"fcm": (100.0, 10)}
    ids = many(25)
    report = dispatch(*ids, clock=utc_now)
    assert (report.claimed, report.counts, report.wakeups) == (25, {"sent": 25}, [])
    assert len(fcm.seen) == 25
    assert {outcome(notification_id) for notification_id in ids} == {("sent", None)}


def test_deliveries_without_a_token_in_time_are_held(
    fcm: ScriptedProvider, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_loop, "RATE_WAIT_SECONDS", 0.5)
    settings.PROVIDER_RATES = {"fcm": (10.0, 2)}
    ids = many(40)
    report = dispatch(*ids, clock=utc_now)
    assert report.counts["sent"] == len(fcm.seen) >= 2
    assert report.counts["pending"] == 40 - len(fcm.seen) >= 30
    held = Counter(outcome(notification_id) for notification_id in ids)
    assert held == {
        ("sent", None): len(fcm.seen),
        ("pending", "rate_limited"): 40 - len(fcm.seen),
    }


def test_single_delivery_without_a_token_takes_no_thread(
    fcm: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"fcm": (1.0, 1)}
    first, second = many(2)
    assert dispatch(first).counts == {"sent": 1}
    report = dispatch(second)
    assert report.counts == {"pending": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [NOON + SECOND]


def test_opt_out_while_a_delivery_waits_for_the_rate_is_respected(
    fcm: ScriptedProvider, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A STOP may come between the check of a batch and the send of its last message."""
    monkeypatch.setattr(send_loop, "RECHECK_SECONDS", 0.0)
    settings.PROVIDER_RATES = {"fcm": (100.0, 1)}
    addresses = ["one@example.com", "two@example.com", "three@example.com"]
    ids = [many(1, recipient=Recipient(email=address))[0] for address in addresses]
    left: list[str] = []

    def reach(boundary: Boundary) -> None:
        if boundary is Boundary.STARTED and not left:
            left.extend(
                address
                for notification_id, address in zip(ids, addresses, strict=True)
                if outcome(notification_id)[0] == "pending"
            )
            for address in left:
                suppress(address)

    monkeypatch.setattr(crash_points, "reach", reach)
    report = dispatch(*ids, clock=utc_now)
    assert report.counts == {"sent": 1, "suppressed": 2}
    assert {request.recipient for request in fcm.seen} == {*addresses} - {*left}


def test_only_what_is_sent_now_is_checked_again(
    fcm: ScriptedProvider, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send_loop, "RECHECK_SECONDS", 0.0)
    settings.PROVIDER_RATES = {"fcm": (100.0, 1)}
    checked: list[int] = []
    check = eligibility.filter_eligible

    def count(claims: Any, **options: Any) -> Any:
        checked.append(len(claims))
        return check(claims, **options)

    monkeypatch.setattr(eligibility, "filter_eligible", count)
    assert dispatch(*many(5), clock=utc_now).counts == {"sent": 5}
    assert checked == [5, 1, 1, 1, 1, 1]


def test_worker_that_stops_while_it_waits_for_the_rate_releases_the_rest(
    fcm: ScriptedProvider, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PROVIDER_RATES = {"fcm": (0.2, 1)}
    stopping = threading.Event()
    monkeypatch.setattr(process, "is_shutting_down", stopping.is_set)

    def stop(_outbound: SendRequest) -> Outcome:
        threading.Timer(0.2, stopping.set).start()
        return scripted.accepted()

    fcm.behave = stop
    ids = many(2)
    report = dispatch(*ids, clock=utc_now)
    assert report.counts == {"sent": 1, "pending": 1}
    assert {outcome(notification_id) for notification_id in ids} == {
        ("sent", None),
        ("pending", None),
    }
    # It is due at once for another process.
    monkeypatch.undo()
    assert leases.claim(ids=ids, channel=EMAIL, worker="other", now=utc_now())
