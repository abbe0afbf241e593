"""Encrypted secrets: stored while a channel is open or the inbox shows them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import override_settings

from api.inbox.schemas import inbox_item
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Content, SensitiveContent
from domain.errors import ProviderResponse
from domain.states import DeliveryStatus
from notifications.actions import actions
from notifications.catalog.types import MASK
from notifications.documents.notification import NotificationDocument
from notifications.store import actions as store_actions
from notifications.store import encrypted_content, leases, removal
from notifications.store import inbox as store_inbox
from notifications.store.inbox import Inbox
from notifications.store.new_notifications import NewDelivery
from notifications.store.pipelines import INBOX_SECRET_LIFETIME
from notifyproject.db.collections import collection
from notifyproject.platform.encryption import DecryptionError
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import ScriptedProvider, rate_limited, refused, timeout
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
CANARY = "CANARY-493021"
SECRET = SensitiveContent(
    data={"code": CANARY}, content={"body": f"Use {CANARY}"}, secrets=(CANARY,)
)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def accepted_with_secret(*channels: Channel, **fields: Any) -> NotificationDocument:
    content = Content(subject="Code", body=MASK, is_masked=True)
    given = {"content": content, "data": {"code": MASK}, "secret": SECRET, **fields}
    return factories.accepted(channels=channels or (EMAIL,), **given)


def has_secret(notification_id: ObjectId) -> bool:
    """Return whether the encrypted secret exists. Checks that none is stored unencrypted."""
    document = factories.read(notification_id)
    assert CANARY not in str(document)
    return "encrypted_content" in document


def deliver(notification_id: ObjectId, *, at: datetime = NOON, channel: Channel = EMAIL) -> None:
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=channel, clock=lambda: at)


def test_secret_is_stored_encrypted_for_its_notification_only() -> None:
    first, other = accepted_with_secret(), accepted_with_secret()
    assert first["encrypted_content"].startswith("v1.tests.")
    assert encrypted_content.secret_in(factories.read(first["_id"])) == SECRET
    with pytest.raises(DecryptionError):
        encrypted_content.secret_in({**other, "encrypted_content": first["encrypted_content"]})


def test_decrypted_secret_is_sent(fcm: ScriptedProvider) -> None:
    deliver(accepted_with_secret()["_id"])
    assert [request.message.text for request in fcm.seen] == [f"Use {CANARY}"]


@each_case("status", [S.SENT, S.FAILED])
def test_settling_the_last_channel_destroys_the_secret(status: DeliveryStatus) -> None:
    notification_id = accepted_with_secret(EMAIL, WHATSAPP)["_id"]
    for channel, is_left in ((EMAIL, True), (WHATSAPP, False)):
        attempt_ = factories.start(factories.claim(notification_id, channel=channel))
        assert has_secret(notification_id)
        leases.settle([factories.settlement(attempt_, status)], now=NOON)
        assert has_secret(notification_id) is is_left


def test_retry_and_unknown_outcome_keep_the_secret(fcm: ScriptedProvider) -> None:
    document = accepted_with_secret()
    fcm.always(rate_limited)
    deliver(document["_id"])
    assert has_secret(document["_id"])
    fcm.always(timeout)
    deliver(document["_id"], at=NOON + timedelta(hours=1))
    assert factories.read(document["_id"])["status"] == "processing"
    assert has_secret(document["_id"])


def test_cancelling_and_expiring_destroy_the_secret(fcm: ScriptedProvider) -> None:
    notification_id = accepted_with_secret()["_id"]
    store_actions.cancel(notification_id=notification_id, channels=[EMAIL], reason="x", now=NOON)
    assert not has_secret(notification_id)
    late = accepted_with_secret(expires_at=NOON + MINUTE)["_id"]
    deliver(late, at=NOON + 2 * MINUTE)
    assert not has_secret(late)
    assert not fcm.seen


def test_secret_of_a_suppressed_notification_is_not_stored() -> None:
    suppressed = NewDelivery(channel=EMAIL, status=S.SUPPRESSED)
    assert "encrypted_content" not in accepted_with_secret(deliveries=(suppressed,))


def test_erasure_destroys_the_secret() -> None:
    document = accepted_with_secret(IN_APP, EMAIL)
    removal.erase(removal.erasable(user_id="ada", limit=5), user_id="ada", now=NOON)
    assert not has_secret(document["_id"])


def shown(document: NotificationDocument, *, at: datetime) -> bool:
    item = inbox_item(document, now=at)
    assert (CANARY in str(item)) or item.body == MASK
    return CANARY in str(item)


@each_case(
    "expires_after, end",
    [
        (None, INBOX_SECRET_LIFETIME),
        (5 * MINUTE, 5 * MINUTE),
        (3 * INBOX_SECRET_LIFETIME, INBOX_SECRET_LIFETIME),
    ],
)
def test_inbox_shows_a_secret_for_a_time(expires_after: timedelta | None, end: timedelta) -> None:
    expires_at = None if expires_after is None else NOON + expires_after
    document = accepted_with_secret(IN_APP, expires_at=expires_at)
    assert document["encrypted_until"] == NOON + end
    assert shown(document, at=NOON + end - SECOND)
    assert not shown(document, at=NOON + end)
    assert encrypted_content.purge_secrets(now=NOON + end - SECOND) == 0
    assert has_secret(document["_id"])
    assert encrypted_content.purge_secrets(now=NOON + end) == 1
    left = factories.read(document["_id"])
    assert not {"encrypted_content", "encrypted_until"} & left.keys()
    assert not shown(left, at=NOON)


def test_secret_is_kept_while_another_channel_is_open() -> None:
    document = accepted_with_secret(IN_APP, EMAIL, expires_at=NOON + MINUTE)
    assert "encrypted_until" not in document
    assert shown(document, at=NOON)
    assert encrypted_content.purge_secrets(now=NOON + INBOX_SECRET_LIFETIME) == 0
    attempt_ = factories.start(factories.claim(document["_id"]))
    leases.settle([factories.settlement(attempt_, S.SENT)], now=NOON)
    assert factories.read(document["_id"])["encrypted_until"] == NOON + MINUTE


def test_secret_past_its_inbox_time_is_destroyed_on_settling() -> None:
    document = accepted_with_secret(IN_APP, EMAIL, expires_at=NOON + MINUTE)
    attempt_ = factories.start(factories.claim(document["_id"]))
    leases.settle([factories.settlement(attempt_, S.SENT)], now=NOON + 2 * MINUTE)
    assert not has_secret(document["_id"])


def test_reading_keeps_the_secret() -> None:
    document = accepted_with_secret(IN_APP)
    inbox = Inbox(document["client_id"], "ada")
    marked = store_inbox.mark_read(inbox=inbox, notification_id=document["_id"], now=NOON)
    assert marked is not None
    assert shown(marked.document, at=NOON)


def test_resend_takes_the_secret_along(broker: Any) -> None:
    document = accepted_with_secret(EMAIL, WHATSAPP)
    resent = actions.resend(notification_id=document["_id"], channels=[EMAIL], now=NOON)
    assert resent["encrypted_content"] != document["encrypted_content"]
    assert encrypted_content.secret_in(resent) == SECRET


@pytest.mark.parametrize("again", [actions.resend, actions.retry])
def test_destroyed_secret_is_not_resent(again: Callable[..., Any], fcm: ScriptedProvider) -> None:
    document = accepted_with_secret()
    fcm.always(refused)
    deliver(document["_id"])
    with pytest.raises(actions.SensitiveDataDestroyedError, match="sensitive data was destroyed"):
        again(notification_id=document["_id"], channels=None, now=NOON)
    assert factories.read(document["_id"])["status"] == "failed"
    assert len(fcm.seen) == 1


def test_retry_has_the_secret_while_one_channel_is_open(broker: Any, fcm: ScriptedProvider) -> None:
    document = accepted_with_secret(EMAIL, WHATSAPP)
    fcm.always(refused)
    deliver(document["_id"])
    reopened = actions.retry(notification_id=document["_id"], channels=None, now=NOON)
    assert encrypted_content.secret_in(reopened) == SECRET


def test_delivery_without_its_key_is_deferred(fcm: ScriptedProvider) -> None:
    document = accepted_with_secret()
    with override_settings(FIELD_ENCRYPTION_KEYS={"other": b"x" * 32}):
        deliver(document["_id"])
    delivery = factories.delivery(factories.read(document["_id"]))
    assert (delivery["status"], delivery["attempt_count"]) == (S.PENDING, 0)
    assert delivery["failure_reason"] == (
        "Sensitive data can't be decrypted: FIELD_ENCRYPTION_KEYS does not list its key, tests."
    )
    deliver(document["_id"], at=delivery["next_attempt_at"])
    assert factories.read(document["_id"])["status"] == "sent"


def test_delivery_without_its_secret_fails(fcm: ScriptedProvider) -> None:
    document = accepted_with_secret()
    collection("notifications").update_one(
        {"_id": document["_id"]}, {"$unset": {"encrypted_content": ""}}
    )
    deliver(document["_id"])
    delivery = factories.delivery(factories.read(document["_id"]))
    assert (delivery["status"], delivery["failure_code"]) == (S.FAILED, "render_failed")
    assert not fcm.seen


def test_secret_in_a_response_is_masked(fcm: ScriptedProvider) -> None:
    document = accepted_with_secret()
    error = refused()
    error.response = ProviderResponse(status=400, excerpt=f"bad text: Use {CANARY}")
    error.reason = f"It refuses {CANARY}."
    fcm.always(lambda: error)
    deliver(document["_id"])
    (attempt,) = factories.attempts(document["_id"])
    assert attempt["platform_response"]["body"] == f"bad text: Use {MASK}"
    assert CANARY not in f"{attempt}{factories.read(document['_id'])}"
