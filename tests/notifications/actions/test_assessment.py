"""The facts from which resend risks are assessed, and the number of reads."""

import copy
from datetime import timedelta
from typing import Any

import pytest

from devices import status
from devices.models import DeactivationReason
from devices.preferences import Preferences
from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import Category, DeliveryStatus
from notifications.actions import actions
from notifications.actions.assessment import assess_risks
from notifications.actions.risk import RiskKind
from notifications.store import leases, removal
from notifications.store.claims import NotSent
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
    found = assess_risks([factories.read(document["_id"])], now=LATER)
    return found[(document["_id"], channel)].kind


def failed(code: FailureCode, *, channel: Channel = Channel.EMAIL, **fields: Any) -> Any:
    begun = factories.started(channel=channel, **fields)
    leases.settle([factories.settlement(begun, S.FAILED, code=code)], now=NOON)
    return factories.read(begun.notification_id)


def suppress(*, marketing_only: bool = False) -> None:
    factories.suppress(
        "ADA@example.com", reason=SuppressionReason.COMPLAINT, marketing_only=marketing_only
    )


def test_active_suppression_counts() -> None:
    document = failed(F.BOUNCED)
    assert kind(document) is RiskKind.SAFE
    suppress()
    assert kind(document) is RiskKind.SUPPRESSED


def test_marketing_suppression_applies_to_marketing_only() -> None:
    suppress(marketing_only=True)
    assert kind(failed(F.PROVIDER_ERROR)) is RiskKind.SAFE
    assert kind(failed(F.PROVIDER_ERROR, category=Category.MARKETING)) is RiskKind.SUPPRESSED


def test_preference_changed_since_counts() -> None:
    document = failed(F.PROVIDER_ERROR)
    collection("recipients").insert_one(
        {"_id": "ada", "preferences": {"transactional": {"muted": True}}, "is_active": True}
    )
    assert kind(document) is RiskKind.SUPPRESSED
    # Critical types ignore preferences.
    assert kind(failed(F.PROVIDER_ERROR, type="mfa_code")) is RiskKind.SAFE


def test_unknown_outcome_may_duplicate() -> None:
    begun = factories.started()
    leases.settle([factories.settlement(begun, S.UNKNOWN, code=F.TIMEOUT)], now=NOON)
    assert kind(factories.read(begun.notification_id)) is RiskKind.MAY_DUPLICATE


def test_resend_that_has_not_failed_makes_another_a_duplicate() -> None:
    document = failed(F.PROVIDER_ERROR, channels=(Channel.EMAIL, Channel.PUSH))
    first = resent(document)
    assert kind(document) is RiskKind.MAY_DUPLICATE
    fail(first)
    assert kind(document) is RiskKind.SAFE
    # The resend of a resend counts too.
    second = resent(first)
    assert kind(document) is RiskKind.MAY_DUPLICATE
    deliver(second)
    assert kind(document) is RiskKind.MAY_DUPLICATE
    risks = assess_risks(
        [factories.read(document["_id"])], ignored_resends=[first["_id"]], now=NOON
    )
    assert risks[(document["_id"], Channel.EMAIL)].kind is RiskKind.SAFE


def resent(document: Any) -> Any:
    return actions.resend(notification_id=document["_id"], channels=[Channel.EMAIL], now=NOON)


def fail(document: Any) -> None:
    begun = factories.start(factories.claim(document["_id"]))
    leases.settle([factories.settlement(begun, S.FAILED, code=F.PROVIDER_ERROR)], now=NOON)


def deliver(document: Any) -> None:
    factories.start(factories.claim(document["_id"]))
    assert factories.arrive(document["_id"])


@pytest.mark.parametrize("code", [F.BOUNCED, F.INVALID_RECIPIENT, F.NO_ADDRESS])
def test_corrected_address_is_safe_unless_it_is_suppressed_too(code: FailureCode) -> None:
    document = factories.read(failed(code)["_id"])
    other = copy.deepcopy(document)
    other["recipient"]["email"] = "ada@home.example"

    def risk() -> RiskKind:
        found = assess_risks([other], corrected=[Channel.EMAIL], now=LATER)
        return found[(document["_id"], Channel.EMAIL)].kind

    assert risk() is RiskKind.SAFE
    factories.suppress("ada@home.example")
    assert risk() is RiskKind.SUPPRESSED


def test_expired_notification_is_expired() -> None:
    document = failed(F.PROVIDER_ERROR, expires_at=NOON + timedelta(minutes=5))
    assert kind(document) is RiskKind.EXPIRED


def test_deleted_notification_will_fail_again() -> None:
    document = failed(F.PROVIDER_ERROR)
    removal.delete(notification_id=document["_id"], client_id=document["client_id"], now=NOON)
    assert kind(document) is RiskKind.WILL_FAIL_AGAIN


def test_erased_recipient_will_fail_again() -> None:
    document = failed(F.PROVIDER_ERROR)
    collection("notifications").update_one({"_id": document["_id"]}, {"$set": {"erased_at": NOON}})
    assert kind(document) is RiskKind.WILL_FAIL_AGAIN


def test_missing_provider_will_fail_again(settings: Any) -> None:
    settings.EMAIL_PROVIDERS = []
    assert kind(failed(F.PROVIDER_ERROR)) is RiskKind.WILL_FAIL_AGAIN


@pytest.mark.usefixtures("push_provider")
def test_push_is_safe_once_a_device_exists() -> None:
    document = failed(F.NO_ADDRESS, channel=Channel.PUSH)
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN
    factories.device("token-1")
    assert kind(document, Channel.PUSH) is RiskKind.SAFE


@pytest.mark.usefixtures("push_provider")
def test_disabled_device_does_not_count() -> None:
    document = failed(F.NO_ADDRESS, channel=Channel.PUSH)
    factories.device("token-1", preferences=Preferences(enabled=False))
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN
    disabled = factories.device("token-2")
    evidence = status.Evidence(at=NOON, source="fcm")
    reason = DeactivationReason.UNREGISTERED
    status.deactivate(device_ids=[disabled], reason=reason, evidence=evidence, now=NOON)
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN


@pytest.mark.usefixtures("push_provider")
def test_device_with_an_invalid_token_does_not_count() -> None:
    device_id = factories.device("token-1")
    document = failed(F.INVALID_RECIPIENT, channel=Channel.PUSH)
    changes = {"device_id": device_id, "error_code": "invalid_recipient"}
    collection("delivery_attempts").update_many(
        {"notification_id": document["_id"]}, {"$set": changes}
    )
    assert kind(document, Channel.PUSH) is RiskKind.WILL_FAIL_AGAIN
    factories.device("token-2")
    assert kind(document, Channel.PUSH) is RiskKind.SAFE


def test_whatsapp_is_safe_once_the_service_window_is_open(settings: Any) -> None:
    settings.WHATSAPP_TOKEN = "a-token"
    document = failed(F.WINDOW_CLOSED, channel=Channel.WHATSAPP)
    assert kind(document, Channel.WHATSAPP) is RiskKind.WILL_FAIL_AGAIN
    service_windows.record_inbound([("+351912345678", NOON)], now=NOON)
    assert kind(document, Channel.WHATSAPP) is RiskKind.SAFE


def test_each_channel_has_its_own_risk() -> None:
    begun = factories.started(channels=(Channel.EMAIL, Channel.IN_APP))
    settled = factories.settlement(begun, S.FAILED, code=F.REJECTED, response={"status": 400})
    leases.settle([settled], now=NOON)
    found = assess_risks([factories.read(begun.notification_id)], now=LATER)
    assert {channel: item.kind for (_, channel), item in found.items()} == {
        Channel.EMAIL: RiskKind.WILL_FAIL_AGAIN,
        Channel.IN_APP: RiskKind.MAY_DUPLICATE,
    }


def test_assessment_reads_each_collection_once() -> None:
    documents = [failed(F.PROVIDER_ERROR, user_id=f"user-{n}") for n in range(4)]
    for name in ("suppressions", "delivery_attempts", "recipients"):
        with plans(name) as found:
            assert len(assess_risks(documents, now=LATER)) == 4
        assert [plan.is_indexed for plan in found] == [True], name


@pytest.fixture
def push_provider(settings: Any) -> None:
    settings.FCM_CREDENTIALS = "a-service-account.json"


def test_step_that_was_not_needed_states_how_the_recipient_was_reached() -> None:
    claim = factories.claimed()
    reason = "Not needed: read on in_app."
    leases.settle_not_sent([NotSent(claim, S.CANCELLED, F.NOT_NEEDED, reason)], now=NOON)
    found = assess_risks([factories.read(claim.notification_id)], now=LATER)
    risk = found[claim.notification_id, Channel.EMAIL]
    assert risk.kind is RiskKind.MAY_DUPLICATE
    assert risk.reason == f"{reason} Would be a duplicate."
