"""What an outage does to a message: its page, the causes, and the advice."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client
from django.utils.html import strip_tags

from console.notifications import presentation, send_now
from console.texts.failure_codes import EXPLANATIONS, Step
from delivery import pipeline, provider_pauses
from delivery.circuit_breaker import CircuitReporter
from delivery.runtime import SendingRuntime
from devices.preferences import Preferences
from domain.channels import Channel
from domain.content import Content
from domain.errors import NO_DEVICE, FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import provider_health
from notifications.actions.risk import DeliveryFacts, RiskKind, assess_risk
from notifications.catalog import limits
from notifications.store import leases
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.clients.console import make_staff, register_ada, signed_in
from tests.support.factories import notifications as factories
from tests.support.fakes.provider import ScriptedProvider, channel_unavailable
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
FAILED = "/admin/notifications/failednotification/"
MINUTE = timedelta(minutes=1)
EMAIL = Channel.EMAIL
S = DeliveryStatus


@pytest.fixture(autouse=True)
def only_provider(fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_now, "providers_for", lambda _channel, **_: (fcm,))
    monkeypatch.setattr(provider_health, "provider_names", lambda: frozenset({fcm.name}))


def dispatch(*ids: ObjectId, at: Any) -> None:
    pipeline.dispatch(SendingRuntime(), ids, channel=EMAIL, clock=lambda: at)


def page_of(client: Client, document: Any) -> tuple[str, list[str]]:
    """Return the text of a notification's page, and its highlighted buttons."""
    page = client.get(f"{LIST}{document['_id']}/change/").content.decode()
    text = re.sub(r"\s+", " ", unescape(strip_tags(page)))
    return text, re.findall(r'button-primary"[^>]*>([^<]+)</button>', page)


def text_of(client: Client, document: Any) -> str:
    return page_of(client, document)[0]


def pause(at: Any, _provider: ScriptedProvider | None = None) -> None:
    provider_pauses.pause("fcm", by="maria", reason="OPS-7", now=at)


def open_circuit(at: Any, provider: ScriptedProvider) -> None:
    CircuitReporter().trip(provider.account, now=at, retry_after=3_600, reason="Token expired.")


OUTAGES = {
    "pause": (pause, "FCM was paused (by maria: OPS-7)", "FCM is paused (by maria: OPS-7)"),
    "circuit": (
        open_circuit,
        "FCM's circuit was open (Token expired)",
        "FCM's circuit is open (Token expired)",
    ),
}


@pytest.mark.parametrize("outage", OUTAGES)
@pytest.mark.parametrize("is_sensitive", [False, True], ids=["plain", "code"])
def test_message_that_expires_in_an_outage_is_a_failure_with_its_cause(
    console: Client, fcm: ScriptedProvider, outage: str, is_sensitive: bool
) -> None:
    begin, was, is_held = OUTAGES[outage]
    start = utc_now() - 10 * MINUTE
    begin(start, fcm)
    document = factories.accepted(created_at=start, expires_at=start + 5 * MINUTE)
    dispatch(document["_id"], at=start)
    dispatch(document["_id"], at=start + MINUTE / 2)
    if is_sensitive:
        change = {"$set": {"content.is_masked": True}}
        collection("notifications").update_one({"_id": document["_id"]}, change)
    dispatch(document["_id"], at=start + 5 * MINUTE)
    stored = factories.delivery(factories.read(document["_id"]))
    assert (stored["status"], stored["failure_code"]) == ("expired", "expired")
    assert stored["failure_reason"] == f"Expired while {was}."
    assert stored["failed_at"] == stored["ended_at"] == start + 5 * MINUTE
    page, primary = page_of(console, document)
    assert page.count(f"Held: {is_held}") == 1
    assert f"not sent: expired while {was}" in page
    assert "Time not recorded" not in page
    if is_sensitive:
        # One verdict.
        assert "Next step: Its sensitive data was destroyed. Send a new notification." in page
        assert primary == []
    else:
        assert (
            "Next step: If the outage isn't over, end it in Providers. Resend what is still" in page
        )
        assert primary == ["Resend"]
    failures = console.get(FAILED)
    changelist = failures.context["cl"]
    assert [row.pk for row in changelist.result_list] == [document["_id"]]
    table = unescape(strip_tags(failures.content.decode()))
    assert table.count(f"xpired while {was}") == 2, "in the causes and in the row"
    [row] = changelist.groups
    assert (row.code, row.channel, row.provider) == ("Expired while held", "Email", "FCM")
    assert row.explanation.meaning == f"expired while {was}"
    chosen = console.get(f"{FAILED}{row.url}").context["cl"]
    assert [row.pk for row in chosen.result_list] == [document["_id"]]


def test_message_that_waits_for_an_unavailable_provider_says_so(
    console: Client, fcm: ScriptedProvider
) -> None:
    start = utc_now() - 2 * MINUTE
    document = factories.accepted(created_at=start, expires_at=start + MINUTE)
    fcm.always(channel_unavailable)
    dispatch(document["_id"], at=start)
    dispatch(document["_id"], at=start + MINUTE)
    stored = factories.delivery(factories.read(document["_id"]))
    assert stored["status"] == "expired"
    assert stored["holds"][0]["reason"] == "provider_unavailable"
    assert "FCM was unavailable" in stored["failure_reason"]


def test_message_that_is_sent_after_an_outage_keeps_it_in_its_timeline(console: Client) -> None:
    start = utc_now() - 10 * MINUTE
    pause(start)
    document = factories.accepted(created_at=start)
    dispatch(document["_id"], at=start)
    provider_pauses.resume("fcm", by="maria")
    dispatch(document["_id"], at=start + 2 * MINUTE)
    events = console.get(f"{LIST}{document['_id']}/change/").context["timeline"]
    titles = [strip_tags(event.title) for event in events]
    assert titles == ["Accepted", "Held: FCM is paused (by maria: OPS-7)", "Attempt 1 Sent"]
    assert console.get(FAILED).context["cl"].result_list == []


def test_message_that_just_expires_is_no_failure(console: Client) -> None:
    start = utc_now() - 10 * MINUTE
    document = factories.accepted(created_at=start, expires_at=start + MINUTE)
    dispatch(document["_id"], at=start + MINUTE)
    stored = factories.delivery(factories.read(document["_id"]))
    assert (stored["failure_reason"], stored.get("failed_at")) == ("Expired before sending.", None)
    assert console.get(FAILED).context["cl"].result_list == []


@pytest.fixture
def weekly() -> Iterator[None]:
    rule = {"types": [], "categories": [], "channels": ["email"], "max": 1}
    rule |= {"period_seconds": 604_800, "min_gap_seconds": 0, "overflow": "later"}
    limits.define_limit("weekly", rule, now=utc_now())
    yield
    collection("limits").delete_many({})
    limits.invalidate_limits()


def press_send_now(client: Client, document: Any) -> str:
    url = f"{LIST}{document['_id']}/run/"
    asked = unescape(strip_tags(client.post(url).content.decode()))
    done = client.post(url, {"confirmed": "yes"}, follow=True).content.decode()
    return f"{asked} / {unescape(strip_tags(done))}"


def in_quiet_hours() -> None:
    register_ada()
    now = utc_now()
    quiet = {"enabled": True, "start": f"{now - MINUTE * 5:%H:%M}", "timezone": "UTC"}
    quiet["end"] = f"{now + MINUTE * 60:%H:%M}"
    collection("recipients").update_one({"_id": "ada"}, {"$set": {"quiet_hours": quiet}})


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("pause", "FCM paused by maria (OPS-7)"),
        ("circuit", "FCM's circuit is open, next probe"),
        ("quiet", "quiet hours until"),
        ("limit", "limit weekly until"),
        ("scheduled and paused", "FCM paused by maria (OPS-7)"),
    ],
)
def test_send_now_is_offered_only_where_it_sends(
    console: Client, fcm: ScriptedProvider, weekly: None, cause: str, text: str
) -> None:
    now = utc_now()
    if cause == "limit":
        dispatch(factories.accepted(created_at=now)["_id"], at=now)
    else:
        limits.remove_limit("weekly")
    later = {"send_at": now + 60 * MINUTE} if cause.startswith("scheduled") else {}
    document = factories.accepted(created_at=now, **later)
    if "pause" in cause:
        pause(now)
    elif cause == "circuit":
        open_circuit(now, fcm)
    elif cause == "quiet":
        in_quiet_hours()
    if not later:
        dispatch(document["_id"], at=now)
    assert factories.delivery(factories.read(document["_id"]))["status"] == "pending"
    page, primary = page_of(console, document)
    assert "Send now" not in page
    assert primary == (["Resume FCM"] if cause == "pause" else [])
    assert ("Open Providers" in page) == (cause in ("pause", "circuit"))
    due_at = factories.delivery(factories.read(document["_id"]))["next_attempt_at"]
    answer = press_send_now(console, document)
    assert f"Stays held: {text}" in answer
    assert f"Still held: {text}" in answer
    assert factories.delivery(factories.read(document["_id"]))["next_attempt_at"] == due_at


ENDING: dict[str, tuple[str, dict[str, Any]]] = {
    "suppressed": ("it would be suppressed: the address is suppressed: hard bounce", {}),
    "muted": ("it would be suppressed: the recipient muted this type", {}),
    "expired": ("it would be expired: expired before sending", {}),
    "no device": (
        f"it would be suppressed: n{NO_DEVICE[1:-1]}",
        {"channels": (Channel.PUSH,), "user_id": "ada"},
    ),
    "device muted": (
        "it would be suppressed: muted by device preferences",
        {"channels": (Channel.PUSH,), "user_id": "ada"},
    ),
    "device quiet": ("quiet hours until", {"channels": (Channel.PUSH,), "user_id": "ada"}),
}


@pytest.mark.parametrize("cause", ENDING)
def test_send_now_says_what_the_engine_would_do(console: Client, cause: str) -> None:
    now = utc_now()
    text, fields = ENDING[cause]
    if cause == "suppressed":
        factories.suppress(reason=SuppressionReason.HARD_BOUNCE)
    elif cause == "muted":
        register_ada(preferences={"payment_confirmed": {"muted": True}})
    elif cause == "expired":
        # The sweeper hasn't ended it yet.
        fields = {"expires_at": now + MINUTE * 61}
    elif cause == "device muted":
        factories.device("t", preferences=Preferences(enabled=False))
    elif cause == "device quiet":
        quiet = {"enabled": True, "start": f"{now - MINUTE * 5:%H:%M}", "timezone": "UTC"}
        quiet["end"] = f"{now + MINUTE * 60:%H:%M}"
        factories.device("t", preferences=Preferences(quiet_hours=quiet))
    document = factories.accepted(created_at=now, send_at=now + MINUTE * 60, **fields)
    if cause == "expired":
        over = {"$set": {"expires_at": now - MINUTE}}
        collection("notifications").update_one({"_id": document["_id"]}, over)
    assert "Send now" not in text_of(console, document)
    answer = press_send_now(console, document)
    assert f"Stays held: {text}" in answer
    (delivery,) = factories.read(document["_id"])["delivery"]
    assert delivery["next_attempt_at"] == document["delivery"][0]["next_attempt_at"]


def test_quiet_hours_and_mutes_hold_no_locked_message(console: Client) -> None:
    now = utc_now()
    in_quiet_hours()
    muted = {"$set": {"preferences": {"payment_confirmed": {"muted": True}}}}
    collection("recipients").update_one({"_id": "ada"}, muted)
    content = Content(subject="Code", body="1234", template_id="mfa_code")
    document = factories.accepted(created_at=now, send_at=now + 60 * MINUTE, content=content)
    assert "Send now" in text_of(console, document)
    answer = press_send_now(console, document)
    assert "Is sent." in answer
    assert "1 notification is being sent." in answer


@pytest.mark.parametrize("is_over", [False, True], ids=["scheduled", "outage over"])
def test_send_now_sends_what_nothing_holds(console: Client, is_over: bool) -> None:
    now = utc_now()
    if is_over:
        pause(now)
        document = factories.accepted(created_at=now)
        dispatch(document["_id"], at=now)
        provider_pauses.resume("fcm", by="maria")
    else:
        document = factories.accepted(created_at=now, send_at=now + 60 * MINUTE)
    assert "Send now" in text_of(console, document)
    answer = press_send_now(console, document)
    assert "Is sent." in answer
    assert "1 notification is being sent." in answer
    assert factories.delivery(factories.read(document["_id"]))["next_attempt_at"] <= utc_now()


def test_pause_is_ended_from_the_page_of_a_held_message(console: Client) -> None:
    now = utc_now()
    pause(now)
    document = factories.accepted(created_at=now)
    dispatch(document["_id"], at=now)
    own = f"{LIST}{document['_id']}/change/"
    answer = console.post("/admin/notifications/providerstate/fcm/resume/", {"next": own})
    assert answer.headers["Location"] == own
    assert provider_pauses.pauses() == {}


def test_support_gets_no_button_for_providers() -> None:
    now = utc_now()
    pause(now)
    document = factories.accepted(created_at=now)
    dispatch(document["_id"], at=now)
    support = signed_in(make_staff("sam", "notifications.view_notification"))
    page = text_of(support, document)
    assert "Open Providers" not in page
    assert "Resume FCM" not in page


@each_case("code", EXPLANATIONS)
@each_case(
    "facts",
    [
        {},
        {"is_sensitive_data_destroyed": True},
        {"is_content_removed": True},
        {"has_provider": False},
        {"can_reach": False},
        {"suppression_reason": "The address is suppressed: hard bounce."},
        {"may_be_delivered": True},
        {"is_expired": True},
    ],
)
def test_advice_never_contradicts_the_resend_risk(code: FailureCode, facts: dict[str, Any]) -> None:
    risk = assess_risk(DeliveryFacts(channel=EMAIL, status=S.FAILED, code=code, **facts))
    delivery = {"channel": "email", "status": "failed", "failure_code": code.value}
    can_retry = risk.kind is not RiskKind.EXPIRED
    advice = presentation.advice(
        delivery, risk, can_retry=can_retry, may=lambda _: True, now=utc_now()
    )
    assert advice is not None
    if not risk.is_by_failure and risk.kind is RiskKind.WILL_FAIL_AGAIN:
        assert advice == risk.reason
    if risk.kind is RiskKind.EXPIRED:
        assert not advice.startswith("Retry")
        assert "and then retry" not in advice
    refused = presentation.advice(
        delivery, risk, can_retry=can_retry, may=lambda _: False, now=utc_now()
    )
    if EXPLANATIONS[code].step is Step.RETRY and risk.is_by_failure:
        assert refused is not None
        assert refused.startswith("Ask an operator: ")


@each_case(
    "code, best",
    [
        (FailureCode.BLOCKED, "Resend"),
        (FailureCode.REPORTED_FAILED, "Resend"),
        (FailureCode.PROVIDER_ERROR, "Retry failed channels"),
        (FailureCode.CONNECTION_FAILED, "Retry failed channels"),
        (FailureCode.RATE_LIMITED, "Retry failed channels"),
        (FailureCode.REJECTED, None),
    ],
)
def test_highlighted_button_is_what_the_advice_says(
    console: Client, code: FailureCode, best: str | None
) -> None:
    now = utc_now()
    begun = factories.started(at=now, created_at=now)
    leases.settle([factories.settlement(begun, S.FAILED, at=now, code=code)], now=now)
    document = factories.read(begun.notification_id)
    assert page_of(console, document)[1] == ([best] if best else [])
