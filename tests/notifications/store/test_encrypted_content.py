"""A secret is stored sealed, while a channel is open or the inbox shows it, and then not at all."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import override_settings

from api.inbox.schemas import inbox_item
from delivery import dispatcher
from domain.content import Content, SensitiveContent
from domain.errors import ProviderResponse
from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.catalog.types import MASK
from notifications.resend import actions
from notifications.store import Document, NewDelivery
from notifications.store.pipelines import INBOX_SECRET_LIFETIME
from notifyproject.db.collections import collection
from notifyproject.platform.encryption import DecryptionError
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import ScriptedProvider, rate_limited, refused, timeout

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
CANARY = "CANARY-493021"
SECRET = SensitiveContent(
    data={"code": CANARY}, content={"body": f"Use {CANARY}"}, secrets=(CANARY,)
)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def secretive(*channels: Channel, **fields: Any) -> Document:
    """Return the document of an accepted notification with a secret."""
    content = Content(subject="Code", body=MASK, is_masked=True)
    given = {"content": content, "data": {"code": MASK}, "secret": SECRET, **fields}
    return factories.accepted(channels=channels or (EMAIL,), **given)


def sealed(notification_id: ObjectId) -> bool:
    """Return whether the secret is there; it is never readable."""
    document = factories.read(notification_id)
    assert CANARY not in str(document)
    return "sealed" in document


def deliver(notification_id: ObjectId, *, at: datetime = NOON, channel: Channel = EMAIL) -> None:
    dispatcher.dispatch([notification_id], channel=channel, clock=lambda: at)


def test_it_is_stored_sealed_and_opens_for_its_own_notification_only() -> None:
    one, other = secretive(), secretive()
    assert one["sealed"].startswith("v1.tests.")
    assert store.secret_in(factories.read(one["_id"])) == SECRET
    with pytest.raises(DecryptionError):
        store.secret_in({**other, "sealed": one["sealed"]})


def test_what_is_sent_is_what_was_given(fcm: ScriptedProvider) -> None:
    document = secretive()
    deliver(document["_id"])
    assert [one.message.text for one in fcm.seen] == [f"Use {CANARY}"]


@pytest.mark.parametrize("status", [S.SENT, S.FAILED])
def test_the_write_that_ends_the_last_channel_destroys_it(status: DeliveryStatus) -> None:
    document = secretive(EMAIL, WHATSAPP)
    one = document["_id"]
    for channel, is_left in ((EMAIL, True), (WHATSAPP, False)):
        begun = factories.start(factories.claim(one, channel=channel))
        assert sealed(one)
        store.settle([factories.settlement(begun, status)], now=NOON)
        assert sealed(one) is is_left


def test_a_retry_and_a_doubt_leave_it(fcm: ScriptedProvider) -> None:
    document = secretive()
    fcm.always(rate_limited)
    deliver(document["_id"])
    assert sealed(document["_id"])
    fcm.always(timeout)
    deliver(document["_id"], at=NOON + timedelta(hours=1))
    assert factories.read(document["_id"])["status"] == "processing"
    assert sealed(document["_id"])


def test_cancelling_and_expiring_destroy_it(fcm: ScriptedProvider) -> None:
    one = secretive()["_id"]
    store.cancel(notification_id=one, channels=[EMAIL], reason="x", now=NOON)
    assert not sealed(one)
    late = secretive(expires_at=NOON + MINUTE)["_id"]
    deliver(late, at=NOON + 2 * MINUTE)
    assert not sealed(late)
    assert not fcm.seen


def test_what_nobody_is_sent_is_not_kept_at_all() -> None:
    off = NewDelivery(channel=EMAIL, status=S.SUPPRESSED)
    assert "sealed" not in secretive(deliveries=(off,))


def test_erasing_destroys_it() -> None:
    document = secretive(IN_APP, EMAIL)
    found = store.erasable(user_id="ada", limit=5)
    store.erase(found, user_id="ada", now=NOON)
    assert not sealed(document["_id"])


# In the inbox.


def shown(document: Document, *, at: datetime) -> bool:
    item = inbox_item(document, now=at)
    assert (CANARY in str(item)) or item.body == MASK
    return CANARY in str(item)


@pytest.mark.parametrize(
    ("expires_after", "end"),
    [
        (None, INBOX_SECRET_LIFETIME),
        (5 * MINUTE, 5 * MINUTE),
        (3 * INBOX_SECRET_LIFETIME, INBOX_SECRET_LIFETIME),
    ],
)
def test_the_inbox_shows_it_for_a_time_and_then_it_is_destroyed(
    expires_after: timedelta | None, end: timedelta
) -> None:
    expires_at = None if expires_after is None else NOON + expires_after
    document = secretive(IN_APP, expires_at=expires_at)
    assert document["sealed_until"] == NOON + end
    assert shown(document, at=NOON + end - SECOND)
    assert not shown(document, at=NOON + end)
    assert store.purge_secrets(now=NOON + end - SECOND) == 0
    assert sealed(document["_id"])
    assert store.purge_secrets(now=NOON + end) == 1
    left = factories.read(document["_id"])
    assert not {"sealed", "sealed_until"} & left.keys()
    assert not shown(left, at=NOON)


def test_while_another_channel_is_open_nothing_is_to_be_forgotten() -> None:
    document = secretive(IN_APP, EMAIL, expires_at=NOON + MINUTE)
    assert "sealed_until" not in document
    assert shown(document, at=NOON)
    assert store.purge_secrets(now=NOON + INBOX_SECRET_LIFETIME) == 0
    begun = factories.start(factories.claim(document["_id"]))
    store.settle([factories.settlement(begun, S.SENT)], now=NOON)
    assert factories.read(document["_id"])["sealed_until"] == NOON + MINUTE


def test_what_ends_after_its_time_in_the_inbox_is_destroyed_at_once() -> None:
    document = secretive(IN_APP, EMAIL, expires_at=NOON + MINUTE)
    begun = factories.start(factories.claim(document["_id"]))
    store.settle([factories.settlement(begun, S.SENT)], now=NOON + 2 * MINUTE)
    assert not sealed(document["_id"])


def test_reading_it_leaves_it_there() -> None:
    document = secretive(IN_APP)
    inbox = store.Inbox(document["client_id"], "ada")
    marked = store.mark_read(inbox=inbox, notification_id=document["_id"], now=NOON)
    assert marked is not None
    assert shown(marked.document, at=NOON)


# Again.


def test_a_resend_before_the_end_takes_it_along(broker: Any) -> None:
    document = secretive(EMAIL, WHATSAPP)
    resent = actions.resend(notification_id=document["_id"], channels=[EMAIL], now=NOON)
    assert resent["sealed"] != document["sealed"]
    assert store.secret_in(resent) == SECRET


@pytest.mark.parametrize("again", [actions.resend, actions.retry])
def test_once_it_is_destroyed_nothing_is_sent_again(
    again: Callable[..., Any], fcm: ScriptedProvider
) -> None:
    document = secretive()
    fcm.always(refused)
    deliver(document["_id"])
    with pytest.raises(actions.SensitiveDataDestroyedError, match="sensitive data was destroyed"):
        again(notification_id=document["_id"], channels=None, now=NOON)
    assert factories.read(document["_id"])["status"] == "failed"
    assert len(fcm.seen) == 1


def test_a_retry_while_another_channel_is_open_still_has_it(
    broker: Any, fcm: ScriptedProvider
) -> None:
    document = secretive(EMAIL, WHATSAPP)
    fcm.always(refused)
    deliver(document["_id"])
    reopened = actions.retry(notification_id=document["_id"], channels=None, now=NOON)
    assert store.secret_in(reopened) == SECRET


# What goes wrong.


def test_without_its_key_a_delivery_waits_for_a_process_that_has_it(fcm: ScriptedProvider) -> None:
    document = secretive()
    with override_settings(FIELD_ENCRYPTION_KEYS={"other": b"x" * 32}):
        deliver(document["_id"])
    delivery = factories.delivery(factories.read(document["_id"]))
    assert (delivery["status"], delivery["attempt_count"]) == (S.PENDING, 0)
    assert delivery["failure_reason"] == (
        "Sensitive data can't be decrypted: FIELD_ENCRYPTION_KEYS does not list its key, tests."
    )
    deliver(document["_id"], at=delivery["next_attempt_at"])
    assert factories.read(document["_id"])["status"] == "sent"


def test_without_its_secret_nothing_is_sent(fcm: ScriptedProvider) -> None:
    document = secretive()
    collection("notifications").update_one({"_id": document["_id"]}, {"$unset": {"sealed": ""}})
    deliver(document["_id"])
    delivery = factories.delivery(factories.read(document["_id"]))
    assert (delivery["status"], delivery["failure_code"]) == (S.FAILED, "render_failed")
    assert not fcm.seen


def test_what_a_provider_repeats_is_kept_nowhere(fcm: ScriptedProvider) -> None:
    document = secretive()
    error = refused()
    error.response = ProviderResponse(status=400, excerpt=f"bad text: Use {CANARY}")
    error.reason = f"It refuses {CANARY}."
    fcm.always(lambda: error)
    deliver(document["_id"])
    (attempt,) = factories.attempts(document["_id"])
    assert attempt["platform_response"]["body"] == f"bad text: Use {MASK}"
    assert CANARY not in f"{attempt}{factories.read(document['_id'])}"
