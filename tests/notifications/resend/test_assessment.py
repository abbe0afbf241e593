"""What is known of deliveries today, gathered for their verdicts in a handful of reads."""

from datetime import timedelta
from typing import Any

import pytest

from devices import status
from devices.models import DeactivationReason
from devices.preferences import Preferences
from domain.errors import FailureCode
from domain.states import Category, Channel, DeliveryStatus
from notifications import store
from notifications.resend.assessment import assess_risks
from notifications.resend.risk import RiskKind
from notifications.store import ProviderAnswer
from notifyproject.db.collections import collection
from recipients import service_windows
from recipients.models import SuppressionReason
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker")

S, F = DeliveryStatus, FailureCode
LATER = NOON + timedelta(hours=1)


def kind(document: Any, channel: Channel = Channel.EMAIL) -> RiskKind:
    """Return the verdict on one channel."""
    found = assess_risks([factories.read(document["_id"])], now=LATER)
    return found[(document["_id"], channel)].kind


def failed(code: FailureCode, *, channel: Channel = Channel.EMAIL, **fields: Any) -> Any:
    """Return a notification that failed for this cause."""
    one = factories.started(channel=channel, **fields)
    settled = factories.settlement(one, S.FAILED, code=code)
    store.settle([settled], now=NOON)
    return factories.read(one.notification_id)


def hold_back(*, marketing_only: bool = False) -> None:
    factories.suppress(
        "ADA@example.com", reason=SuppressionReason.COMPLAINT, marketing_only=marketing_only
    )


def test_a_suppression_counts_as_long_as_it_stands() -> None:
    document = failed(F.BOUNCED)
    assert kind(document) is RiskKind.SAFE
    hold_back()
    assert kind(document) is RiskKind.SUPPRESSED


def test_what_holds_back_marketing_only_holds_back_nothing_else() -> None:
    hold_back(marketing_only=True)
    assert kind(failed(F.PROVIDER_ERROR)) is RiskKind.SAFE
    marketing = failed(F.PROVIDER_ERROR, category=Category.MARKETING)
    assert kind(marketing) is RiskKind.SUPPRESSED


def test_a_person_who_has_muted_it_since_does_not_want_it() -> None:
    document = failed(F.PROVIDER_ERROR)
    collection("recipients").insert_one(
        {"_id": "ada", "preferences": {"transactional": {"muted": True}}, "is_active": True}
    )
    assert kind(document) is RiskKind.SUPPRESSED
    # A code to sign in with is sent to whoever asks for it.
    assert kind(failed(F.PROVIDER_ERROR, type="mfa_code")) is RiskKind.SAFE


def test_an_attempt_nobody_knows_the_end_of_may_have_arrived() -> None:
    one = factories.started()
    store.settle([factories.settlement(one, S.UNKNOWN, code=F.TIMEOUT)], now=NOON)
    document = factories.read(one.notification_id)
    assert kind(document) is RiskKind.MAY_DUPLICATE


def test_what_is_over_has_expired() -> None:
    document = failed(F.PROVIDER_ERROR, expires_at=NOON + timedelta(minutes=5))
    assert kind(document) is RiskKind.EXPIRED


def test_an_erased_person_gets_nothing_again() -> None:
    document = failed(F.PROVIDER_ERROR)
    collection("notifications").update_one({"_id": document["_id"]}, {"$set": {"erased_at": NOON}})
    assert kind(document) is RiskKind.WILL_FAIL_AGAIN


def test_without_a_provider_nothing_goes(settings: Any) -> None:
    settings.EMAIL_PROVIDERS = []
    assert kind(failed(F.PROVIDER_ERROR)) is RiskKind.WILL_FAIL_AGAIN


@pytest.mark.usefixtures("_push_is_set_up")
def test_a_push_is_worth_another_try_once_there_is_a_device_for_it() -> None:
    document = failed(F.NO_ADDRESS, channel=Channel.PUSH)
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN
    factories.device("token-1")
    assert kind(document, Channel.PUSH) is RiskKind.SAFE


@pytest.mark.usefixtures("_push_is_set_up")
def test_a_device_that_wants_none_of_it_or_is_off_is_none() -> None:
    document = failed(F.NO_ADDRESS, channel=Channel.PUSH)
    factories.device("token-1", preferences=Preferences(enabled=False))
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN
    off = factories.device("token-2")
    evidence = status.Evidence(at=NOON, source="fcm")
    reason = DeactivationReason.UNREGISTERED
    status.deactivate(device_ids=[off], reason=reason, evidence=evidence, now=NOON)
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN


@pytest.mark.usefixtures("_push_is_set_up")
def test_a_device_whose_token_was_refused_is_none_either() -> None:
    device_id = factories.device("token-1")
    document = failed(F.INVALID_RECIPIENT, channel=Channel.PUSH)
    collection("delivery_attempts").update_many(
        {"notification_id": document["_id"]}, {"$set": {"device_id": device_id}}
    )
    collection("delivery_attempts").update_many(
        {"notification_id": document["_id"]}, {"$set": {"error_code": "invalid_recipient"}}
    )
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN
    factories.device("token-2")
    assert kind(document, Channel.PUSH) is RiskKind.SAFE


def test_whatsapp_takes_it_once_they_have_written(settings: Any) -> None:
    settings.WHATSAPP_TOKEN = "a-token"
    document = failed(F.WINDOW_CLOSED, channel=Channel.WHATSAPP)
    assert kind(document, Channel.WHATSAPP) is RiskKind.WILL_FAIL_AGAIN
    service_windows.record_inbound([("+351912345678", NOON)], now=NOON)
    assert kind(document, Channel.WHATSAPP) is RiskKind.SAFE


def test_each_channel_has_its_own_verdict() -> None:
    one = factories.started(channels=(Channel.EMAIL, Channel.IN_APP))
    answer = ProviderAnswer(provider="sendgrid", message_id=None, response={"status": 400})
    settled = factories.settlement(one, S.FAILED, code=F.REJECTED, answer=answer)
    store.settle([settled], now=NOON)
    document = factories.read(one.notification_id)
    found = assess_risks([document], now=LATER)
    assert {channel: one.kind for (_, channel), one in found.items()} == {
        Channel.EMAIL: RiskKind.WILL_FAIL_AGAIN,
        Channel.IN_APP: RiskKind.MAY_DUPLICATE,
    }


def test_a_hundred_notifications_are_judged_with_one_read_of_each_collection() -> None:
    documents = [failed(F.PROVIDER_ERROR, user_id=f"user-{n}") for n in range(4)]
    for name in ("suppressions", "delivery_attempts", "recipients"):
        with plans(name) as found:
            assert len(assess_risks(documents, now=LATER)) == 4
        assert [plan.is_indexed for plan in found] == [True], name


@pytest.fixture
def _push_is_set_up(settings: Any) -> None:
    """Let a provider be set up for push; it is asked for nothing."""
    settings.FCM_CREDENTIALS = "a-service-account.json"
