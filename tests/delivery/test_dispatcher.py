"""One batch on the real store: claimed, held back or sent, settled."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import dispatcher
from delivery.dispatcher import MAX_BATCH, BatchReport
from domain.content import Content, Recipient
from domain.states import Channel, DeliveryStatus, Priority
from notifications import store
from notifications.store import LEASE
from notifyproject.platform import process
from providers.contract import NotAttemptedError
from recipients.models import PersonalQuietHours
from recipients.models import Recipient as Person
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted, new, suppress
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import Behaviour, ScriptedProvider, Slow, rate_limited

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
Use = Callable[..., ScriptedProvider]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Give a test a way to say which provider serves every channel."""

    def install(behave: Behaviour | None = None) -> ScriptedProvider:
        provider = ScriptedProvider(behave)
        monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: (provider,))
        return provider

    return install


def deliver(
    *ids: ObjectId,
    channel: Channel = EMAIL,
    at: datetime = NOON,
    clock: Callable[[], datetime] | None = None,
) -> BatchReport:
    return dispatcher.dispatch(ids, channel=channel, clock=clock or (lambda: at))


def outcome(notification_id: ObjectId, channel: Channel = EMAIL) -> tuple[str, str | None]:
    delivery = factories.delivery(factories.read(notification_id), channel)
    return delivery["status"], delivery.get("failure_code")


def many(count: int, **fields: Any) -> Sequence[ObjectId]:
    results = store.accept([new(**fields) for _ in range(count)], now=NOON)
    return [result.document["_id"] for result in results if isinstance(result, store.Accepted)]


def test_what_is_due_is_sent_and_settled(use: Use) -> None:
    provider = use()
    notification_id = accepted()["_id"]
    report = deliver(notification_id)
    assert (report.claimed, report.counts, report.wakeups) == (1, {"sent": 1}, [])
    assert outcome(notification_id) == ("sent", None)
    assert [o.recipient for o in provider.seen] == ["ada@example.com"]


def test_an_id_that_comes_often_is_sent_once(use: Use) -> None:
    provider = use()
    notification_id = accepted()["_id"]
    deliver(*[notification_id] * 5)
    deliver(notification_id)
    assert len(provider.seen) == 1


def test_more_than_a_batch_is_sent_in_batches(use: Use) -> None:
    provider = use()
    report = deliver(*many(MAX_BATCH + 20))
    assert report.counts == {"sent": MAX_BATCH + 20}
    assert len({o.reference for o in provider.seen}) == MAX_BATCH + 20


def test_a_failure_is_looked_at_again_when_it_is_due(use: Use) -> None:
    use(lambda _outbound: rate_limited(retry_after=7_200))
    notification_id = accepted()["_id"]
    report = deliver(notification_id)
    (wakeup,) = report.wakeups
    assert report.counts == {"pending": 1}
    assert (wakeup.notification_id, wakeup.channel) == (notification_id, EMAIL)
    assert (wakeup.priority, wakeup.at) == ("normal", NOON + 120 * MINUTE)
    assert outcome(notification_id) == ("pending", "rate_limited")


@pytest.mark.parametrize("channel", [PUSH, WHATSAPP])
def test_a_channel_without_a_provider_fails(channel: Channel) -> None:
    notification_id = accepted(channels=[channel])["_id"]
    report = deliver(notification_id, channel=channel)
    assert report.counts == {"failed": 1}
    assert outcome(notification_id, channel) == ("failed", "channel_unavailable")


def test_a_scheduled_in_app_is_delivered_when_it_is_due() -> None:
    notification_id = accepted(channels=[IN_APP], send_at=NOON + MINUTE)["_id"]
    assert deliver(notification_id, channel=IN_APP).claimed == 0
    assert deliver(notification_id, channel=IN_APP, at=NOON + MINUTE).counts == {"delivered": 1}


def test_what_three_workers_took_and_never_sent_is_quarantined_and_the_others_go_on(
    use: Use,
) -> None:
    provider = use()
    bad, good = accepted()["_id"], accepted()["_id"]
    at = NOON
    for _ in range(3):
        factories.claim(bad, at=at)
        at += LEASE
    report = deliver(bad, good, at=at)
    assert report.counts == {"failed": 1, "sent": 1}
    assert outcome(bad) == ("failed", "quarantined")
    assert len(provider.seen) == 1


def test_what_a_lost_worker_had_goes_one_by_one_so_that_none_takes_another_along(use: Use) -> None:
    """One of them may be what it died of: the others must not be quarantined with it."""
    lost, fresh = many(3), many(2)
    store.claim(ids=lost, channel=EMAIL, worker="lost", now=NOON)
    held: list[int] = []

    def look(_outbound: Any) -> Any:
        documents = [factories.read(one) for one in (*lost, *fresh)]
        deliveries = [factories.delivery(one) for one in documents]
        ours = [one["claim"] for one in deliveries if one["claim"]]
        held.append(sum(claim["worker"] != "lost" for claim in ours))
        return scripted.accepted()

    provider = use(look)
    report = deliver(*lost, *fresh, at=NOON + LEASE)
    assert report.counts == {"sent": 5}
    assert {o.notification_id for o in provider.seen[:2]} == {str(one) for one in fresh}
    assert held == [2, 2, 1, 1, 1]


def test_a_worker_that_stops_leaves_what_was_to_go_alone_to_others(use: Use) -> None:
    lost = many(3)
    store.claim(ids=lost, channel=EMAIL, worker="lost", now=NOON)
    process.request_shutdown()
    try:
        assert deliver(*lost, at=NOON + LEASE).claimed == 0
    finally:
        process.clear_shutdown()


def test_what_cannot_be_rendered_fails_alone(use: Use) -> None:
    use()
    masked = Content(subject="x", body="y", template_id="mfa_code", is_masked=True)
    bad, good = accepted(content=masked)["_id"], accepted()["_id"]
    assert deliver(bad, good).counts == {"failed": 1, "sent": 1}
    assert outcome(bad) == ("failed", "render_failed")


def test_a_person_asleep_is_left_alone_until_the_morning(use: Use) -> None:
    provider = use()
    Person.objects.create(
        user_id="ada",
        created_at=NOON,
        updated_at=NOON,
        quiet_hours=PersonalQuietHours(enabled=True, start="11:00", end="13:00"),
        timezone="UTC",
    )
    normal, urgent = accepted()["_id"], accepted(priority=Priority.CRITICAL)["_id"]
    report = deliver(normal, urgent)
    assert report.counts == {"pending": 1, "sent": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [NOON + 60 * MINUTE]
    assert outcome(normal) == ("pending", "quiet_hours")
    assert len(provider.seen) == 1


def test_an_address_suppressed_meanwhile_gets_nothing(use: Use) -> None:
    provider = use()
    notification_id = accepted()["_id"]
    suppress("ada@example.com")
    assert deliver(notification_id).counts == {"suppressed": 1}
    assert outcome(notification_id) == ("suppressed", "suppressed")
    assert provider.seen == []


@pytest.mark.parametrize(
    ("type_", "wish", "fate"),
    [
        ("payment_confirmed", {"payment_confirmed": {"muted": True}}, "suppressed"),
        ("payment_confirmed", {"transactional": {"muted_channels": ["email"]}}, "suppressed"),
        ("payment_confirmed", {"transactional": {"muted_channels": ["push"]}}, "sent"),
        ("mfa_code", {"transactional": {"muted": True}, "alert": {"muted": True}}, "sent"),
    ],
)
def test_what_a_person_has_muted_meanwhile_is_not_sent(
    use: Use, type_: str, wish: dict[str, Any], fate: str
) -> None:
    use()
    notification_id = accepted(type=type_)["_id"]
    Person.objects.create(user_id="ada", preferences=wish, created_at=NOON, updated_at=NOON)
    assert deliver(notification_id).counts == {fate: 1}


def test_a_suppressed_address_gets_nothing_in_any_spelling(use: Use) -> None:
    provider = use()
    suppress("ada@example.com")
    spellings = ["ada@example.com", "Ada@example.com", "ADA@example.com"]
    ids = [accepted(recipient=Recipient(email=email))["_id"] for email in spellings]
    assert deliver(*ids).counts == {"suppressed": 3}
    assert provider.seen == []


def test_what_has_expired_is_not_sent(use: Use) -> None:
    provider = use()
    notification_id = accepted(expires_at=NOON + MINUTE)["_id"]
    assert deliver(notification_id, at=NOON + MINUTE).counts == {"expired": 1}
    assert provider.seen == []


@pytest.mark.usefixtures("one_thread")
def test_what_expires_while_its_batch_is_sent_is_not_sent(use: Use) -> None:
    """A batch is sent in rounds; a slow provider can make each last fifteen seconds."""
    slowly = Slow(takes=15 * SECOND, now=NOON)
    provider = use(slowly)
    ids = many(3, expires_at=NOON + 10 * SECOND)
    deliver(*ids, clock=slowly.clock)
    assert len(provider.seen) == 1
    assert sorted(outcome(one)[0] for one in ids)[-1] == "sent"


def test_what_expires_while_its_files_are_fetched_is_not_sent(use: Use) -> None:
    notification_id = accepted(expires_at=NOON + SECOND)["_id"]
    use(lambda _outbound: NotAttemptedError())
    report = deliver(notification_id)
    assert [one.at for one in report.wakeups] == [NOON]
    assert outcome(notification_id) == ("pending", None)
    deliver(notification_id, at=NOON + SECOND)
    assert outcome(notification_id) == ("expired", "expired")


def test_a_send_that_is_not_begun_because_its_lease_is_short_is_not_an_unknown_outcome(
    use: Use,
) -> None:
    """The process was frozen between its start and its send: no byte has left."""
    provider = use()
    notification_id = accepted(type="marketing")["_id"]

    def thaws_late() -> datetime:
        return NOON + LEASE if outcome(notification_id)[0] == "sending" else NOON

    deliver(notification_id, clock=thaws_late)
    assert provider.seen == []
    store.expire_leases(now=NOON + 2 * LEASE)
    assert outcome(notification_id)[0] != "unknown"
