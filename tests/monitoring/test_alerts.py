"""Alerts: rules, incidents, recipients, and resolution."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from bson import ObjectId
from django.contrib.auth.models import Group
from structlog.testing import capture_logs

from access import actors
from access.clients import registry as clients
from access.models import StaffUser
from callbacks.events import DisabledReason
from delivery import circuit_breaker, pipeline, provider_pauses, worker
from delivery.circuit_breaker import CircuitReporter
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.country_units import SentUnits
from domain.daily_units import UnitUse, day_of
from domain.rooms import RoomKind
from domain.states import DeliveryStatus
from monitoring import alert_rules, alerts, incidents, rollup, rollup_state
from monitoring.models import AlertKind
from notifications.broadcasts import approvals
from notifications.catalog import texts, types
from notifications.documents.catalog import EmergencyChangeDocument
from notifications.intake import acceptance, requests
from notifications.intake.requests import Caller
from notifications.receipts import processor
from notifications.store import country_units, daily_units
from notifyproject.db.collections import collection
from providers import registry
from providers.contract import Receipt, ReceiptKind
from providers.discovery import SPECS
from providers.labels import PROVIDERS
from rooms import registry as rooms
from tasks import tasks
from tests.support.accounts import declare
from tests.support.factories import broadcasts
from tests.support.factories import notifications as factories
from tests.support.factories.alerts import MINUTE, NOW, evaluate, fail, found, sent_alerts, subjects
from tests.support.fakes.provider import ScriptedProvider

pytestmark = pytest.mark.usefixtures("db", "calm")

S = DeliveryStatus
HOUR = timedelta(hours=1)


def test_failures_over_the_threshold_open_and_resolve_an_incident(
    maria: StaffUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = ScriptedProvider(name="sendgrid")
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (provider,))
    fail(10, channels=(Channel.EMAIL,))
    assert evaluate(NOW + MINUTE) == 0, "ten do not exceed the threshold"
    fail(1, channel=Channel.PUSH)
    fail(4, channel=Channel.WHATSAPP)
    with capture_logs() as logs:
        for minutes in range(2, 6):
            assert evaluate(NOW + minutes * MINUTE) == 1
    assert [log["log_level"] for log in logs if log["event"] == "alert_opened"] == ["critical"]
    assert subjects() == ["Alert: 15 final failures"]
    worker.run_inline(SendingRuntime(), clock=lambda: NOW + 6 * MINUTE)
    (message,) = sent_alerts()
    statuses = {d["channel"]: d["status"] for d in message["delivery"]}
    assert statuses == {"email": "sent", "in_app": "delivered"}
    assert [outbound.recipient for outbound in provider.seen] == ["maria@example.com"]
    assert message["user_id"] == "staff:maria"
    hour_later = NOW + 61 * MINUTE
    assert evaluate(hour_later) == 0
    (incident,) = found()
    assert (incident["is_open"], incident["resolved_at"]) == (False, hour_later)
    assert subjects() == ["Alert: 15 final failures", "Resolved: 15 final failures"]
    evaluate(hour_later + MINUTE)
    assert len(sent_alerts()) == 2


def test_rule_can_name_a_channel_and_a_type() -> None:
    collection("alert_rules").delete_many({})
    collection("alert_rules").insert_one(
        {"name": "Codes by WhatsApp", "kind": "failures", "threshold": 1, "window_minutes": 5}
        | {"channel": "whatsapp", "type": "mfa_code", "is_enabled": True}
    )
    fail(5, type="mfa_code")
    fail(5, channel=Channel.WHATSAPP)
    fail(1, channel=Channel.WHATSAPP, type="mfa_code")
    assert evaluate(NOW + MINUTE) == 0
    fail(1, channel=Channel.WHATSAPP, type="mfa_code")
    assert evaluate(NOW + MINUTE) == 1
    (incident,) = found()
    assert incident["broken_channel"] == "whatsapp"
    assert evaluate(NOW + 6 * MINUTE) == 0


def test_test_notifications_and_own_alerts_open_no_incident() -> None:
    fail(20, is_test=True)
    fail(20, type="system_alert")
    assert evaluate(NOW + MINUTE) == 0


def test_pushes_to_people_without_a_device_open_no_incident(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = ScriptedProvider(name="fcm")
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (provider,))
    for _ in range(20):
        notification_id = factories.accepted(channels=[Channel.PUSH])["_id"]
        pipeline.dispatch(
            SendingRuntime(), [notification_id], channel=Channel.PUSH, clock=lambda: NOW
        )
    assert evaluate(NOW + MINUTE) == 0


def test_disabled_rule_opens_no_incident() -> None:
    collection("alert_rules").update_many({}, {"$set": {"is_enabled": False}})
    fail(20)
    assert evaluate(NOW + MINUTE) == 0


def test_alert_avoids_the_failing_channel(maria: StaffUser) -> None:
    factories.device("a-token", user_id="staff:maria")
    fail(11)
    evaluate(NOW + MINUTE)
    (message,) = sent_alerts()
    assert sorted(message["channels"]) == ["in_app", "push"]


def test_alert_goes_to_configured_recipients(maria: StaffUser, settings: Any) -> None:
    settings.ALERT_RECIPIENTS = ("ops@example.com", "ada")
    collection("recipients").insert_one(
        {"_id": "ada", "email": "ada@example.com", "attributes": {}, "preferences": {}}
        | {"is_active": True, "created_at": NOW, "updated_at": NOW}
    )
    fail(11, channel=Channel.PUSH)
    evaluate(NOW + MINUTE)
    channels = {alert.get("user_id"): sorted(alert["channels"]) for alert in sent_alerts()}
    assert channels == {None: ["email"], "ada": ["email", "in_app"]}


def test_alert_goes_to_active_staff_by_role() -> None:
    for name, role in (("rui", "operator"), ("eva", "viewer"), ("ana", "admin"), ("ivo", "admin")):
        group, _ = Group.objects.get_or_create(name=role)
        user = StaffUser.objects.create_user(name, f"{name}@example.com", "s3cret-enough")
        user.groups.add(group)
    StaffUser.objects.filter(username="ivo").update(is_active=False)
    fail(11, channel=Channel.PUSH)
    evaluate(NOW + MINUTE)
    assert {alert["user_id"] for alert in sent_alerts()} == {"staff:rui", "staff:ana"}


def test_alert_without_recipients_is_logged() -> None:
    fail(11)
    with capture_logs() as logs:
        evaluate(NOW + MINUTE)
    assert "alert_has_no_recipients" in [log["event"] for log in logs]
    assert len(found()) == 1


def create_room() -> None:
    rooms.create(
        slug="alerts",
        kind=RoomKind.SLACK_BOT,
        name="Alerts",
        target="C024BE91L",
        min_gap_seconds=1,
        now=NOW,
    )


def test_alert_that_the_room_alone_gets_and_refuses_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_room()
    fail(11)
    refused = requests.AlreadyNotifiedError(None)
    with monkeypatch.context() as patch:
        patch.setattr(acceptance, "accept", Mock(side_effect=refused))
        evaluate(NOW + MINUTE)
    assert found()[0].get("notified_open_at") is None
    evaluate(NOW + 2 * MINUTE)
    assert [message["recipient"]["room"] for message in sent_alerts()] == ["alerts"]
    assert found()[0]["notified_open_at"] is not None


def test_recipient_with_the_name_of_the_room_gets_an_alert_too(settings: Any) -> None:
    settings.ALERT_RECIPIENTS = ("room:alerts",)
    create_room()
    fail(11)
    evaluate(NOW + MINUTE)
    assert [(sent.get("user_id"), sent["recipient"].get("room")) for sent in sent_alerts()] == [
        ("room:alerts", None),
        (None, "alerts"),
    ]


def test_concurrent_evaluations_open_one_incident(maria: StaffUser) -> None:
    fail(11)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: alerts.evaluate(now=NOW + MINUTE), range(4)))
    assert len(found()) == 1
    assert len(sent_alerts()) == 1


def test_interrupted_alert_is_sent_later(maria: StaffUser, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(11, channel=Channel.PUSH)
    with monkeypatch.context() as patch:
        patch.setattr(incidents, "mark_notified", Mock(side_effect=ConnectionError))
        with pytest.raises(ConnectionError):
            evaluate(NOW + MINUTE)
    fail(1, channel=Channel.PUSH)
    evaluate(NOW + 2 * MINUTE)
    evaluate(NOW + 3 * MINUTE)
    assert len(found()) == len(sent_alerts()) == 1
    assert found()[0]["notified_open_at"] is not None


def test_brief_recovery_is_the_same_incident(maria: StaffUser) -> None:
    fail(11)
    evaluate(NOW + MINUTE)
    collection("notifications").update_many({}, {"$unset": {"failed_at": ""}})
    evaluate(NOW + MINUTE + timedelta(seconds=30))
    assert found()[0]["is_open"]
    fail(11, at=NOW + 2 * MINUTE)
    evaluate(NOW + 2 * MINUTE)
    assert len(found()) == 1


def test_second_outage_is_a_second_incident(maria: StaffUser) -> None:
    collection("alert_rules").delete_many({"kind": {"$ne": AlertKind.FAILURES}})
    fail(11, channel=Channel.PUSH)
    evaluate(NOW + MINUTE)
    evaluate(NOW + timedelta(hours=2))
    later = NOW + timedelta(hours=3)
    fail(11, at=later, channel=Channel.PUSH)
    evaluate(later)
    assert [item["is_open"] for item in found()] == [False, True]
    assert len(sent_alerts()) == 3


def test_incident_is_acknowledged_once() -> None:
    fail(11)
    evaluate(NOW + MINUTE)
    (incident,) = found()
    assert incidents.acknowledge(incident["_id"], by="maria", now=NOW)
    assert not incidents.acknowledge(incident["_id"], by="rui", now=NOW)
    assert found()[0]["acknowledged_by"] == "maria"


def kinds() -> set[str]:
    return {item["kind"] for item in found() if item["is_open"]}


def test_open_circuit_opens_an_incident_for_its_account() -> None:
    account = registry.get_provider("sendgrid").account
    CircuitReporter().trip(account, now=NOW, retry_after=600, reason="The key is revoked.")
    CircuitReporter().trip("sandbox-fcm:1", now=NOW, retry_after=600)
    evaluate(NOW + MINUTE)
    (incident,) = found()
    assert (incident["kind"], incident["broken_channel"]) == (AlertKind.BREAKER_OPEN, "email")
    assert "The key is revoked." in incident["detail"]
    circuit_breaker.close(account)
    evaluate(NOW + 4 * MINUTE)
    assert kinds() == set()


def test_overdue_work_opens_an_incident_after_five_minutes() -> None:
    factories.accepted()
    for minutes, expected in ((5, set()), (6, {AlertKind.WORK_OVERDUE})):
        evaluate(NOW + minutes * MINUTE)
        assert kinds() == expected


def test_missing_sweep_opens_an_incident_after_three_minutes() -> None:
    for minutes, expected in ((3, set()), (4, {AlertKind.SWEEP_OVERDUE})):
        alerts.evaluate(now=NOW + minutes * MINUTE)
        assert kinds() == expected


def test_roll_up_that_is_late_or_stopped_opens_an_incident() -> None:
    def open_titles(minutes: int) -> list[str]:
        evaluate(NOW + minutes * MINUTE)
        return [incident["title"] for incident in found() if incident["is_open"]]

    assert open_titles(16) == [], "there was no roll-up yet"
    rollup.run(now=NOW)
    assert open_titles(15) == []
    assert open_titles(16) == ["No metrics roll-up for over 15 min"]
    rollup.run(now=NOW + 16 * MINUTE)
    assert open_titles(19) == []
    for minutes in (20, 25, 30):
        assert rollup_state.acquire_lease(now=NOW + minutes * MINUTE), "a worker that is lost"
    assert rollup.run(now=NOW + 35 * MINUTE) is None
    assert open_titles(35) == ["Metrics roll-up stopped"]


def test_stalled_scheduler_is_detected_without_it(maria: StaffUser) -> None:
    fail(11)
    alerts.evaluate_stalled(now=NOW + 4 * MINUTE)
    assert kinds() == {AlertKind.SWEEP_OVERDUE}
    assert len(sent_alerts()) == 1


def test_paused_provider_opens_an_incident_after_an_hour() -> None:
    provider_pauses.pause("sendgrid", by="rui", reason="", now=NOW)
    evaluate(NOW + 60 * MINUTE)
    assert kinds() == set()
    evaluate(NOW + 61 * MINUTE)
    assert kinds() == {AlertKind.PROVIDER_PAUSED}
    assert found()[0]["broken_channel"] == "email"


def test_disabled_callback_opens_an_incident_unless_disabled_by_hand() -> None:
    for reason in DisabledReason:
        collection("callbacks").insert_one(
            {"host": f"{reason}.example.com", "disabled_at": NOW, "disabled_reason": reason.value}
        )
    evaluate(NOW + MINUTE)
    details = [one["detail"] for one in found() if one["kind"] == AlertKind.CALLBACK_DISABLED]
    for reason in DisabledReason:
        is_told = any(f"{reason}.example.com" in detail for detail in details)
        assert is_told is (reason is not DisabledReason.BY_OPERATOR), reason


def test_last_key_of_a_client_opens_an_incident_30_days_before_its_expiry() -> None:
    day = timedelta(days=1)
    shop = clients.create_client(name="shop", scopes=[], now=NOW)
    clients.issue_key(client_id=shop, now=NOW, lifetime=40 * day)
    rotated = clients.create_client(name="rotated", scopes=[], now=NOW)
    for lifetime in (40 * day, 400 * day):
        clients.issue_key(client_id=rotated, now=NOW, lifetime=lifetime)
    evaluate(NOW + 9 * day)
    assert AlertKind.KEY_EXPIRING not in kinds()
    evaluate(NOW + 11 * day)
    (incident,) = [item for item in found() if item["kind"] == AlertKind.KEY_EXPIRING]
    assert incident["title"] == f"API client shop: key expires on {NOW + 40 * day:%Y-%m-%d}"
    clients.issue_key(client_id=shop, now=NOW + 12 * day)
    evaluate(NOW + 12 * day)
    evaluate(NOW + 12 * day + 3 * MINUTE)
    (incident,) = [item for item in found() if item["kind"] == AlertKind.KEY_EXPIRING]
    assert not incident["is_open"]


def pumping() -> list[str]:
    """Return the titles of open incidents about inflated traffic."""
    return [one["title"] for one in found() if one["kind"] == AlertKind.PUMPING and one["is_open"]]


def send_texts(units: int, *, country: str = "PT", is_asked: bool = True, **ago: int) -> None:
    text = SentUnits(provider="twilio", country=country, units=units, is_asked=is_asked)
    country_units.count_sent([text], now=NOW - timedelta(**ago))


def test_burst_of_codes_to_one_country_opens_an_incident() -> None:
    send_texts(50)
    evaluate(NOW)
    assert pumping() == []
    send_texts(30, country="ES")
    send_texts(1)
    evaluate(NOW)
    assert pumping() == ["SMS to Portugal: 51 parts in 10 min"]
    evaluate(NOW + 20 * MINUTE)
    evaluate(NOW + 24 * MINUTE)
    assert pumping() == []


def test_what_a_country_usually_gets_is_no_burst() -> None:
    for days in range(1, 7):
        send_texts(100, days=days)
        send_texts(1, country="ES", days=days)
    send_texts(900)
    send_texts(60, country="ES")
    evaluate(NOW)
    assert pumping() == ["SMS to Spain: 60 parts in 10 min"]
    send_texts(101)
    evaluate(NOW)
    assert "SMS to Portugal: 1,001 parts in 10 min" in pumping()


def test_long_attack_does_not_become_usual() -> None:
    for minutes in range(0, 60, 10):
        send_texts(500, minutes=minutes)
    evaluate(NOW)
    assert pumping() == ["SMS to Portugal: 500 parts in 10 min"]


def test_campaign_is_no_inflated_traffic() -> None:
    """No stranger can cause it."""
    send_texts(5_000, is_asked=False)
    evaluate(NOW)
    assert pumping() == []


def test_block_by_the_provider_opens_an_incident() -> None:
    country_units.record_blocks({"PT": 1}, provider="twilio", now=NOW)
    evaluate(NOW)
    assert pumping() == ["SMS to Portugal: the provider suspects pumping"]
    evaluate(NOW + 45 * MINUTE)
    evaluate(NOW + 49 * MINUTE)
    assert pumping() == []


def silent() -> list[str]:
    """Return the titles of open incidents about receipts that stopped."""
    kind = AlertKind.NO_RECEIPTS
    return [one["title"] for one in found() if one["kind"] == kind and one["is_open"]]


def send(count: int, *, provider: str, minutes: int) -> ObjectId:
    """Send mails so many minutes ago; return the last one."""
    at = NOW - minutes * MINUTE
    for _ in range(count):
        sent = factories.settled(S.SENT, at=at, created_at=at, provider=provider)
    return ObjectId(sent["_id"])


def report(notification_id: ObjectId, *, provider: str, minutes: int) -> None:
    at = NOW - minutes * MINUTE
    receipt = Receipt(
        reference=f"{notification_id}.email.1",
        provider_id=None,
        kind=ReceiptKind.DELIVERED,
        at=at,
        reason=None,
        event_id=f"{notification_id}",
        address=None,
    )
    processor.apply_receipts([receipt], provider=provider, now=at)


def count_attempts() -> None:
    rollup.rebuild(since=NOW - 3 * HOUR, until=NOW, now=NOW)


KINDS = [name for name, spec in SPECS.items() if spec.channel is Channel.EMAIL]


@pytest.fixture
def accounts(settings: Any) -> None:
    """Let an account of each kind of email send, and one more of a kind."""
    declared = {"PROVIDER_OTHER_KIND": "postmark", "PROVIDER_OTHER_SERVER_TOKEN": "other-token"}
    declare(settings, **declared, EMAIL_PROVIDER="other")
    settings.EMAIL_PROVIDERS = ("other", *KINDS)
    settings.SMTP_HOST, settings.RESEND_API_KEY = "smtp.example.com", "re_key"
    settings.POSTMARK_SERVER_TOKEN = settings.MAILTRAP_API_TOKEN = "token"
    settings.MAILGUN_API_KEY = settings.BREVO_API_KEY = settings.SPARKPOST_API_KEY = "key"
    settings.MAILJET_API_KEY = settings.MAILJET_SECRET_KEY = "key"
    settings.SES_ACCESS_KEY_ID, settings.SES_SECRET_ACCESS_KEY = "AKIATEST", "secret"
    registry.clear()


@pytest.mark.usefixtures("accounts")
def test_account_without_receipts_for_two_hours_opens_an_incident() -> None:
    for kind in ("other", *KINDS):
        send(1, provider=kind, minutes=125)
        send(5, provider=kind, minutes=20)
    count_attempts()
    evaluate(NOW)
    names = {PROVIDERS[kind] for kind in KINDS if kind != "smtp"} | {"other (Postmark)"}
    assert {*silent()} == {f"{name}: no receipts for over 120 min" for name in names}


@pytest.mark.usefixtures("accounts")
def test_receipt_of_one_account_says_nothing_about_another() -> None:
    last = [send(5, provider=provider, minutes=150) for provider in ("postmark", "other")]
    report(last[0], provider="postmark", minutes=110)
    report(last[1], provider="other", minutes=130)
    for provider in ("postmark", "other"):
        send(1, provider=provider, minutes=125)
    send(5, provider="postmark", minutes=100)
    send(5, provider="other", minutes=100)
    count_attempts()
    evaluate(NOW)
    assert silent() == ["other (Postmark): no receipts for over 120 min"]
    assert f"last receipt: {NOW - 130 * MINUTE:%Y-%m-%d %H:%M} UTC" in found()[0]["detail"]
    report(send(1, provider="other", minutes=5), provider="other", minutes=0)
    for minutes in (1, 5):
        evaluate(NOW + minutes * MINUTE)
    assert silent() == []


@pytest.mark.usefixtures("accounts")
def test_idle_account_has_nothing_to_report_on() -> None:
    """Its first messages since are as old as a receipt may be, and no older."""
    report(send(5, provider="postmark", minutes=150), provider="postmark", minutes=149)
    send(50, provider="postmark", minutes=20)
    send(50, provider="resend", minutes=100)
    count_attempts()
    evaluate(NOW)
    assert silent() == []


@pytest.mark.usefixtures("accounts")
def test_account_that_sends_rarely_is_found_by_the_hour() -> None:
    send(5, provider="postmark", minutes=10 * 60)
    send(5, provider="postmark", minutes=20)
    rollup.rebuild(since=NOW - 12 * HOUR, until=NOW, now=NOW)
    evaluate(NOW)
    assert silent() == [f"{PROVIDERS['postmark']}: no receipts for over 120 min"]


@pytest.mark.usefixtures("accounts")
def test_few_new_or_old_messages_may_lack_receipts() -> None:
    send(4, provider="postmark", minutes=20)
    send(5, provider="resend", minutes=10)
    send(5, provider="mailgun", minutes=130)
    count_attempts()
    evaluate(NOW)
    assert silent() == []


def test_client_that_has_used_most_of_a_daily_cap_opens_an_incident(settings: Any) -> None:
    settings.SMS_DAILY_UNITS, settings.SMS_DAILY_UNITS_ABROAD = 0, 100
    shop, other = (clients.create_client(name=name, scopes=[], now=NOW) for name in ("shop", "b"))
    for client, units in ((shop, 79), (other, 79), (shop, 1)):
        evaluate(NOW)
        assert AlertKind.DAILY_UNITS not in kinds()
        use = UnitUse(units=units, is_abroad=True, day=day_of(NOW))
        daily_units.reserve_units([use], client_id=client, day=use.day, caps=texts.unit_caps())
    evaluate(NOW)
    (incident,) = [item for item in found() if item["kind"] == AlertKind.DAILY_UNITS]
    assert incident["title"] == "API client shop: 80 of 100 daily SMS parts abroad used"
    evaluate(NOW + timedelta(days=1))
    (incident,) = [item for item in found() if item["kind"] == AlertKind.DAILY_UNITS]
    assert not incident["is_open"]


def test_broadcast_sent_without_an_approval_opens_an_incident() -> None:
    caller = Caller(client_id=broadcasts.CALLER.client_id, requires_approval=True)
    author = actors.client_actor(caller.client_id)
    broadcast_id = broadcasts.begun(at=NOW, caller=caller)
    evaluate(NOW)
    assert AlertKind.APPROVAL_OVERRIDDEN not in kinds()
    seen = broadcasts.read(broadcast_id)["approval"]["fingerprint"]
    approvals.override(
        broadcast_id, fingerprint=seen, reason="The site is down.", by=author, now=NOW
    )
    evaluate(NOW)
    (incident,) = [item for item in found() if item["kind"] == AlertKind.APPROVAL_OVERRIDDEN]
    assert incident["title"] == "A broadcast of marketing was sent without an approval"
    assert "The site is down." in incident["detail"]
    for days in (1, 2, 9):
        evaluate(NOW + timedelta(days=days, minutes=5))
    (incident,) = [item for item in found() if item["kind"] == AlertKind.APPROVAL_OVERRIDDEN]
    assert incident["is_open"], "until somebody has seen it"
    incidents.acknowledge(incident["_id"], by="maria", now=NOW + timedelta(days=9))
    evaluate(NOW + timedelta(days=9, minutes=6))
    (incident,) = [item for item in found() if item["kind"] == AlertKind.APPROVAL_OVERRIDDEN]
    assert not incident["is_open"]


def test_each_change_of_a_type_in_an_emergency_opens_an_incident() -> None:
    for minute, reason in enumerate(["The price is wrong.", "The link is wrong, too."]):
        emergency: EmergencyChangeDocument = {
            "reason": reason,
            "by": "staff:ana",
            "at": NOW + minute * MINUTE,
        }
        types.store_type("order_shipped", {}, now=NOW, emergency=emergency)
        collection("notification_types").update_one(
            {"_id": "order_shipped"}, {"$set": {"emergency_changes.0.pushed_at": NOW}}
        )
        evaluate(NOW + minute * MINUTE)
    opened = [item for item in found() if item["kind"] == AlertKind.EMERGENCY_CHANGE]
    assert [item["title"] for item in opened] == [
        "The type order_shipped was changed in an emergency"
    ] * 2
    assert opened[1]["detail"] == (
        f"At {NOW + MINUTE:%Y-%m-%d %H:%M} UTC, by staff:ana. The link is wrong, too."
    )
    evaluate(NOW + 62 * MINUTE)
    evaluate(NOW + 65 * MINUTE)
    assert not any(item["is_open"] for item in found() if item["kind"] == opened[0]["kind"])


def stopped() -> list[tuple[str, bool]]:
    """Return the titles of incidents about broadcasts that wait for their authors."""
    kind = AlertKind.APPROVAL_STOPPED
    return [(one["title"], one["is_open"]) for one in found() if one["kind"] == kind]


def test_broadcast_without_a_decision_opens_an_incident() -> None:
    caller = Caller(client_id=broadcasts.CALLER.client_id, requires_approval=True)
    broadcast_id = broadcasts.begun(at=NOW, caller=caller)
    evaluate(NOW)
    assert stopped() == []
    end = NOW + approvals.DECIDE_WITHIN
    broadcasts.run_page(broadcast_id, at=end)
    evaluate(end)
    assert stopped() == [("A broadcast of marketing expired", True)]
    author = actors.client_actor(caller.client_id)
    approvals.submit(broadcast_id, by=author, now=end)
    for minutes in (1, 4):
        evaluate(end + minutes * MINUTE)
    assert stopped() == [("A broadcast of marketing expired", False)]


def test_held_broadcast_opens_an_incident_with_the_reason() -> None:
    caller = Caller(client_id=broadcasts.CALLER.client_id, requires_approval=True)
    broadcast_id = broadcasts.begun(at=NOW, caller=caller)
    seen = broadcasts.read(broadcast_id)["approval"]["fingerprint"]
    colleague = actors.Actor(key="staff:colleague", keys=frozenset({"staff:colleague"}))
    approvals.approve(broadcast_id, fingerprint=seen, by=colleague, now=NOW)
    collection("broadcasts").update_one({"_id": broadcast_id}, {"$set": {"priority": "high"}})
    broadcasts.run_to_completion(broadcast_id, at=NOW)
    evaluate(NOW)
    assert stopped() == [("A broadcast of marketing was held", True)]
    (incident,) = [one for one in found() if one["kind"] == AlertKind.APPROVAL_STOPPED]
    assert approvals.CHANGED in incident["detail"]


def test_task_evaluates_the_rules() -> None:
    tasks.evaluate_alerts()
    assert kinds() == {AlertKind.SWEEP_OVERDUE}, "the last sweep is a day old"


def test_changed_shipped_rules_are_kept() -> None:
    collection("alert_rules").update_one({"slug": "failures"}, {"$set": {"threshold": 99}})
    alert_rules.add_missing_rules()
    assert len(alert_rules.enabled_rules()) == len(alert_rules.SHIPPED_RULES)
    assert {rule.threshold for rule in alert_rules.enabled_rules()} >= {99}


def add_rule_of_a_newer_version() -> ObjectId:
    rule = {"name": "Bees", "kind": "bees_left", "threshold": 1, "window_minutes": 60}
    added = collection("alert_rules").insert_one({**rule, "is_enabled": True})
    return ObjectId(added.inserted_id)


def test_rule_of_a_newer_version_stops_no_other_one() -> None:
    rule_id = add_rule_of_a_newer_version()
    fail(11)
    with capture_logs() as logs:
        evaluate(NOW + MINUTE)
        alerts.evaluate_stalled(now=NOW + 5 * MINUTE)
    assert kinds() == {AlertKind.FAILURES, AlertKind.SWEEP_OVERDUE}
    skipped = [log["rule"] for log in logs if log["event"] == "alert_rule_unknown"]
    assert skipped == [str(rule_id)] * 2


def test_incident_of_a_newer_version_stays_open_until_that_version_resolves_it() -> None:
    incident = {"key": "bees:all", "rule_id": add_rule_of_a_newer_version(), "kind": "bees_left"}
    times = {"opened_at": NOW, "last_seen_at": NOW, "notified_open_at": None}
    collection("incidents").insert_one(
        {**incident, **times, "title": "Bees left", "detail": "All.", "is_open": True}
    )
    evaluate(NOW + 10 * MINUTE)
    assert [(one["title"], one["is_open"]) for one in found()] == [("Bees left", True)]


def test_rule_that_cannot_be_evaluated_stops_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its incidents stay open, because nobody knows whether they are over."""
    fail(11)
    evaluate(NOW + MINUTE)
    provider_pauses.pause("sendgrid", by="rui", reason="", now=NOW)
    monkeypatch.setattr(alert_rules, "_count_failed_by_channel", Mock(side_effect=ValueError))
    with capture_logs() as logs:
        evaluate(NOW + 61 * MINUTE)
    assert {one["kind"] for one in found() if one["is_open"]} == {
        AlertKind.FAILURES,
        AlertKind.PROVIDER_PAUSED,
    }
    assert [log["kind"] for log in logs if log["event"] == "alert_rule_failed"] == ["failures"]
