"""Only the account that sent a message reports on it, whatever reference a webhook has."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.receipts import processor
from notifications.store import leases
from notifyproject.db.collections import collection
from providers.contract import Receipt, ReceiptKind
from tests.support.accounts import declare
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, settlement
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, SMS, WHATSAPP = map(Channel, ("email", "sms", "whatsapp"))
S, K = DeliveryStatus, ReceiptKind
MINUTE = timedelta(minutes=1)
LATER = NOON + 10 * MINUTE


@pytest.fixture(autouse=True)
def _accounts(settings: Any) -> None:
    """Declare an account that sends, and one that no longer does."""
    declared = {}
    for name in ("old", "new"):
        declared |= {f"PROVIDER_{name.upper()}_KIND": "sendgrid"}
        declared |= {f"PROVIDER_{name.upper()}_API_KEY": f"SG.key-of-the-{name}"}
    declare(settings, **declared, EMAIL_PROVIDER="new")


def report(
    notification_id: ObjectId,
    kind: ReceiptKind,
    *,
    provider: str,
    channel: Channel = EMAIL,
    attempt: int = 1,
    **fields: Any,
) -> int:
    """Apply a receipt by its reference, unless ``fields`` say otherwise. Return what changed."""
    default: dict[str, Any] = {
        "reference": f"{notification_id}.{channel}.{attempt}",
        "provider_id": None,
        "kind": kind,
        "at": LATER,
        "reason": "550 no such user",
        "event_id": f"{notification_id}:{attempt}:{kind}",
        "address": None,
    }
    receipt = Receipt(**(default | fields))
    return processor.apply_receipts([receipt], provider=provider, now=LATER).changed


def state(notification_id: ObjectId, channel: Channel = EMAIL) -> tuple[str, str | None]:
    delivery = factories.delivery(factories.read(notification_id), channel)
    return delivery["status"], delivery.get("provider")


KINDS = (K.QUEUED, K.SENT, K.DELIVERED, K.READ, K.BOUNCED, K.BLOCKED, K.REJECTED, K.FAILED)


@each_case("kind", KINDS)
@each_case("status", [S.SENT, S.PENDING, S.UNKNOWN, S.FAILED])
def test_other_account_changes_nothing(status: DeliveryStatus, kind: ReceiptKind) -> None:
    notification_id = factories.settled(status, provider="new")["_id"]
    before = factories.read(notification_id)
    for provider in ("old", "sendgrid", "resend"):
        for attempt in (1, 2):
            assert report(notification_id, kind, provider=provider, attempt=attempt) == 0
    assert factories.read(notification_id) == before


@each_case("kind", [K.DELIVERED, K.BOUNCED])
def test_other_account_does_not_end_an_attempt_in_progress(kind: ReceiptKind) -> None:
    begun = factories.started(provider="new")
    assert report(begun.notification_id, kind, provider="old") == 0
    assert state(begun.notification_id) == ("sending", "new")
    assert report(begun.notification_id, kind, provider="new") == 1


def test_message_id_of_another_account_names_nothing() -> None:
    """Both accounts have a message of this ID."""
    old, new = (factories.settled(S.SENT, provider=name)["_id"] for name in ("old", "new"))
    by_id = {"reference": None, "provider_id": "sg-1", "event_id": "event-1"}
    assert report(old, K.BOUNCED, provider="old", **by_id) == 1
    assert (state(old)[0], state(new)[0]) == ("failed", "sent")


@each_case("kind", [K.DELIVERED, K.BOUNCED])
def test_account_reports_on_its_channel_only(kind: ReceiptKind) -> None:
    """Also on a delivery that no account has attempted."""
    for document in (
        factories.settled(S.SENT, provider="twilio", channel=SMS),
        factories.accepted(channels=(SMS,)),
    ):
        before = factories.read(document["_id"])
        for provider in ("old", "whatsapp"):
            assert report(document["_id"], kind, provider=provider, channel=SMS) == 0
        assert factories.read(document["_id"]) == before


@each_case("kind", KINDS)
def test_sandbox_reports_at_the_address_of_any_account(kind: ReceiptKind) -> None:
    for provider in ("sendgrid", "old"):
        begun = factories.started(provider="sandbox-sendgrid", is_test=True)
        assert report(begun.notification_id, kind, provider=provider) == 1
        assert state(begun.notification_id)[1] == "sandbox-sendgrid"


def test_whatsapp_reports_by_reference_and_by_its_id() -> None:
    for fields in ({"reference": None, "provider_id": "sg-1"}, {}):
        document = factories.settled(S.SENT, provider="whatsapp", channel=WHATSAPP)
        reported = report(document["_id"], K.READ, provider="whatsapp", channel=WHATSAPP, **fields)
        assert reported == 1, fields


@each_case("kind", [K.DELIVERED, K.BOUNCED])
def test_attempt_that_is_not_on_record_may_be_of_any_account(kind: ReceiptKind) -> None:
    """A restored backup lacks the attempts that were made after it."""
    document = factories.accepted()
    assert report(document["_id"], kind, provider="old") == 1


def sent_by_both() -> ObjectId:
    """Return an email that the old account may have sent, and that the new one has sent."""
    notification_id = factories.settled(S.PENDING, provider="old")["_id"]
    at = NOON + 5 * MINUTE
    begun = factories.start(factories.claim(notification_id, at=at), at=at, provider="new")
    leases.settle([settlement(begun, S.SENT, at=at, provider="new")], now=at)
    return ObjectId(notification_id)


@each_case("kind", [K.DELIVERED, K.READ])
def test_earlier_attempt_is_of_the_account_that_made_it(kind: ReceiptKind) -> None:
    notification_id = sent_by_both()
    assert report(notification_id, kind, provider="old", attempt=2) == 0
    assert report(notification_id, kind, provider="sendgrid", attempt=1) == 0
    assert state(notification_id) == ("sent", "new")
    assert report(notification_id, kind, provider="old", attempt=1) == 1
    assert state(notification_id)[1] == "old"


def test_bounce_of_an_earlier_attempt_says_nothing_about_another_account() -> None:
    notification_id = sent_by_both()
    assert report(notification_id, K.BOUNCED, provider="old", attempt=1) == 0
    assert state(notification_id) == ("sent", "new")


def test_receipts_of_the_own_account_cost_no_read_of_attempts() -> None:
    notification_id = factories.settled(S.SENT, provider="new")["_id"]
    with plans("delivery_attempts") as found:
        for kind in (K.QUEUED, K.SENT, K.DELIVERED, K.READ, K.SENT):
            report(notification_id, kind, provider="new")
    assert found == []
    assert state(notification_id)[0] == "read"
    assert collection("provider_events").count_documents({}) == 4
