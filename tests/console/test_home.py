"""Dashboard metrics, and the home page."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client
from django.utils.html import escape, strip_tags

from console import home, problems
from console.alerts import evidence_of
from console.problems import ServiceState
from delivery import provider_pauses
from delivery.circuit_breaker import CircuitState, State
from delivery.provider_pauses import Pause
from domain.channels import Channel
from domain.errors import FailureCode
from domain.rooms import RoomKind
from domain.states import DeliveryStatus
from domain.time import utc_now
from domain.wait_reasons import WaitReason
from monitoring import dashboard, failure_groups, incidents, rollup
from monitoring.dashboard import WorkSummary
from monitoring.failure_groups import FailureCount, FailureCounts
from monitoring.incidents import Finding
from monitoring.models import AlertKind, AlertRule
from monitoring.provider_health import Health, ProviderHealth
from notifications.store import leases
from notifications.store.claims import NotSent
from notifyproject.db.collections import collection
from rooms import registry
from tests.support.clients.console import listed, make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import begun
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

S, F = DeliveryStatus, FailureCode
AT_NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NO_WORK = WorkSummary(
    due=0, oldest_due_at=None, scheduled=0, retrying=0, unknown=0, held_on={}, last_sweep=AT_NOON
)
RESUME = "/admin/notifications/providerstate/sendgrid/resume/"
NO_FAILURES = FailureCounts(groups=(), counted_since=None)


@pytest.fixture
def now() -> datetime:
    """Return the middle of the present hour, so that minutes more or less stay in that hour."""
    return utc_now().replace(minute=30, second=0, microsecond=0)


def fail(at: datetime, code: FailureCode, **fields: Any) -> Any:
    begun = factories.started(at=at, created_at=at, **fields)
    leases.settle([factories.settlement(begun, S.FAILED, at=at, code=code)], now=at)
    return begun.notification_id


def deliver(at: datetime) -> None:
    document = factories.settled(S.SENT, at=at, created_at=at)
    assert factories.arrive(document["_id"], at=at)


def test_traffic_counts_deliveries_by_hour_and_channel(now: datetime) -> None:
    hour_ago = now - timedelta(hours=1)
    deliver(now)
    factories.settled(S.SENT, at=hour_ago, created_at=hour_ago)
    fail(hour_ago, F.REJECTED)
    factories.accepted(created_at=now, channels=(Channel.EMAIL, Channel.IN_APP))
    factories.settled(S.SENT, at=now, created_at=now, is_test=True)
    too_old = now - timedelta(hours=24)
    factories.settled(S.SENT, at=too_old, created_at=too_old)
    rollup.run(now=now)
    rollup.rebuild(since=too_old, until=now + timedelta(minutes=1), now=now)
    traffic = dashboard.traffic(now=now)
    assert len(traffic.hours) == 24
    assert traffic.counted_at == now
    day = traffic.per_channel(since=min(traffic.hours))
    email, in_app, push = day[Channel.EMAIL], day[Channel.IN_APP], day[Channel.PUSH]
    assert (email.accepted, email.sent, email.delivered, email.failed) == (4, 2, 1, 1)
    assert email.success_rate == pytest.approx(2 / 3)
    assert email.latency_quantile(0.95) == pytest.approx(0.095)
    assert (in_app.sent, in_app.success_rate) == (1, 1.0)
    assert (push.success_rate, push.latency_quantile(0.95)) == (None, None)
    this_hour = traffic.per_channel(since=now.replace(minute=0))
    assert (this_hour[Channel.EMAIL].sent, this_hour[Channel.EMAIL].failed) == (1, 0)


def test_failures_are_grouped_by_channel_and_code(now: datetime) -> None:
    for hours in (3, 1):
        fail(now - timedelta(hours=hours), F.REJECTED)
    fail(now, F.TIMEOUT, channel=Channel.PUSH, type="system_alert")
    fail(now - timedelta(hours=30), F.TIMEOUT)
    day_ago = now - timedelta(hours=24)
    found = failure_groups.count_failures(since=day_ago)
    counts = [(g.channel, g.code, g.count) for g in found.groups]
    assert counts == [(Channel.EMAIL, "rejected", 2), (Channel.PUSH, "timeout", 1)]
    first = found.groups[0]
    assert (first.first_at, first.last_at) == (now - timedelta(hours=3), now - timedelta(hours=1))
    assert (found.total, found.counted_since) == (3, None)
    only = failure_groups.count_failures(since=day_ago, match={"type": "system_alert"})
    assert [g.code for g in only.groups] == ["timeout"]
    before = failure_groups.count_failures(since=day_ago - timedelta(hours=16), until=day_ago)
    assert (before.total, before.groups[0].code) == (1, "timeout")


def test_capped_failures_report_since_when_they_count(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_groups, "FAILURE_CAP", 2)
    for hours in range(3):
        fail(now - timedelta(hours=hours), F.REJECTED)
    found = failure_groups.count_failures(since=now - timedelta(hours=24))
    assert (found.total, found.counted_since) == (2, now - timedelta(hours=1))


def test_several_failed_channels_of_a_notification_do_not_reach_the_cap(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_groups, "FAILURE_CAP", 3)
    for hours in range(2):
        at = now - timedelta(hours=hours)
        notification_id = factories.accepted(channels=(Channel.EMAIL, Channel.PUSH), created_at=at)[
            "_id"
        ]
        failed = {"delivery.$[].status": "failed", "delivery.$[].failed_at": at, "failed_at": at}
        collection("notifications").update_one({"_id": notification_id}, {"$set": failed})
    found = failure_groups.count_failures(since=now - timedelta(hours=24))
    assert (found.total, found.counted_since) == (4, None)


def test_work_summary_counts_pending_work(now: datetime) -> None:
    empty = dashboard.summarize_work(now=now)
    assert (empty.due, empty.oldest_due_at, empty.last_sweep) == (0, None, None)
    hour_ago = now - timedelta(hours=1)
    factories.accepted(created_at=hour_ago)
    later = now + timedelta(hours=3)
    factories.accepted(created_at=now, send_at=later, scheduled_at=later)
    factories.settled(S.PENDING, at=now, created_at=now)
    factories.settled(S.UNKNOWN, at=now, created_at=now)
    for at in (hour_ago - timedelta(hours=1), now):
        factories.accepted(created_at=at, is_test=True)
    collection("heartbeats").insert_one({"_id": "sweep", "at": now})
    backlog = dashboard.summarize_work(now=now)
    assert (backlog.due, backlog.oldest_due_at) == (1, hour_ago)
    assert (backlog.scheduled, backlog.retrying, backlog.unknown) == (1, 1, 1)
    assert backlog.last_sweep == now


def text_of(client: Client) -> str:
    return " ".join(client.get("/admin/").content.decode().split())


def test_home_reports_no_problems(console: Client) -> None:
    collection("heartbeats").insert_one({"_id": "sweep", "at": utc_now()})
    assert "No metrics yet." in text_of(console)
    rollup.run(now=utc_now())
    page = text_of(console)
    assert "Operational" in page
    assert "nothing waits for you" in page
    assert "No failures" in page


def test_home_shows_the_last_day(console: Client) -> None:
    now = utc_now()
    deliver(now)
    fail(now, F.REJECTED)
    rollup.run(now=now + timedelta(seconds=1))
    context = console.get("/admin/").context
    email = context["channels"][0]
    assert (email["name"], email["today"].sent, email["day"].failed) == ("Email", 1, 1)
    assert context["totals"]["rate"] == "50.0 %"
    page = text_of(console)
    for words in (
        "No sweep: missed wake-ups aren&#x27;t picked up.",
        "/admin/notifications/failednotification/?channel=email&amp;code=rejected",
        "Outage",
        "Retrying",
        "SendGrid",
        "95 ms",
        "sent and failed per hour",
        "Success rate, 24 h",
        "1 of 2 sent",
        "50.0 % of 2",
        "Accepted to sent, p95",
    ):
        assert words in page, words
    assert page.count("As of ") == 1, "one time for all counts"


def test_rate_is_100_percent_without_failures(console: Client) -> None:
    now = utc_now()
    factories.settled(S.SENT, at=now, created_at=now)
    rollup.run(now=now + timedelta(seconds=1))
    assert console.get("/admin/").context["totals"]["rate"] == "100 %"


def test_capped_backlog_has_a_plus_sign(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    now = utc_now()
    monkeypatch.setattr(home, "BACKLOG_COUNT_CAP", 1)
    factories.settled(S.PENDING, at=now, created_at=now)
    assert "1+" in text_of(console)


def test_home_reports_outdated_metrics(console: Client) -> None:
    rollup.run(now=utc_now() - timedelta(minutes=10))
    assert "Metrics last updated" in text_of(console)


def test_open_incident_comes_first_and_is_acknowledged(console: Client) -> None:
    texts = {"title": "No sweep for over 3 minutes", "detail": "There was none ever."}
    kind = AlertKind.SWEEP_OVERDUE
    finding = Finding(rule_id=ObjectId(), kind=kind, subject="all", **texts)
    incident = incidents.record(finding, now=utc_now())
    assert incident is not None
    page = text_of(console)
    assert page.index("No sweep for over 3 minutes") < page.rindex("No sweep: missed")
    assert page.count('class="notice notice-danger"') == 1
    url = f"/admin/analytics/incident/{incident['_id']}/acknowledge/"
    assert f'action="{url}"' in page
    console.post(url)
    page = text_of(console)
    assert "Acknowledged by maria." in page
    assert url not in page


def test_metrics_require_the_view_permission(db: None) -> None:
    nobody = signed_in(make_staff("nobody"))
    page = text_of(nobody)
    assert "Select a page from the menu." in page
    assert "Failures, last 24 h" not in page


def failed(code: FailureCode, count: int, *, ago: timedelta = timedelta()) -> FailureCounts:
    group = FailureCount(
        channel=Channel.EMAIL,
        code=code.value,
        count=count,
        first_at=AT_NOON - timedelta(hours=20),
        last_at=AT_NOON - ago,
    )
    return FailureCounts(groups=(group,), counted_since=None)


def issues(**fields: Any) -> list[problems.Issue]:
    given: dict[str, Any] = {
        "backlog": NO_WORK,
        "failures": NO_FAILURES,
        "sent": {},
        "now": AT_NOON,
    } | fields
    return problems.issues(**given)


@each_case(
    "code, count, sent, is_shown",
    [
        (F.PROVIDER_ERROR, 9, 0, False),
        (F.PROVIDER_ERROR, 10, 300, True),
        (F.PROVIDER_ERROR, 10, 400, False),
        (F.BOUNCED, 31, 170, True),
        (F.BOUNCED, 31, 10_000, False),
        # Causes that don't end by themselves, from three on.
        (F.WINDOW_CLOSED, 1, 0, False),
        (F.WINDOW_CLOSED, 3, 5, True),
        (F.RENDER_FAILED, 3, 500, False),
        # Never normal.
        (F.QUARANTINED, 1, 10_000, True),
        (F.INTERNAL_ERROR, 1, 10_000, True),
    ],
)
def test_failures_are_an_issue_by_their_share(
    code: FailureCode, count: int, sent: int, is_shown: bool
) -> None:
    found = issues(failures=failed(code, count), sent={Channel.EMAIL: sent, Channel.PUSH: 1})
    assert [item.key for item in found] == ([f"email:{code}"] if is_shown else [])


def test_issue_names_its_share_and_leads_to_its_failures() -> None:
    [issue] = issues(failures=failed(F.PROVIDER_ERROR, 20), sent={Channel.EMAIL: 80})
    assert issue.text == "Email: 20 failures in 1 h (20.0 %), provider error (5xx)"
    assert issue.list_query == "channel=email&code=provider_error&failed_within=1h"
    assert issue.is_mutable


def test_outage_explains_the_failures_of_its_channel() -> None:
    many = failed(F.PROVIDER_ERROR, 1_234)
    assert issues(failures=many, out={Channel.EMAIL}) == []
    assert [issue.key for issue in issues(failures=many, out={Channel.PUSH})] == [
        "email:provider_error"
    ]
    assert issues(failures=failed(F.BOUNCED, 20), out={Channel.EMAIL}) != []


def create_room(slug: str) -> None:
    registry.create(
        slug=slug,
        kind=RoomKind.SLACK_BOT,
        name=slug.title(),
        target="C024BE91L",
        min_gap_seconds=1,
        now=AT_NOON,
    )


def test_room_that_is_gone_needs_attention_until_it_is_enabled(console: Client) -> None:
    for slug in ("ops", "dev_1", "quiet"):
        create_room(slug)
    registry.disable("dev_1", reason="The channel is archived.", now=AT_NOON)
    registry.disable("quiet", now=AT_NOON)
    page = text_of(console)
    assert "Room Dev_1: The room is disabled: The channel is archived." in page
    assert 'href="/admin/rooms/room/dev_5F1/change/">Open room' in page
    assert "Room Ops" not in page
    assert "Room Quiet" not in page
    console.post("/admin/analytics/incident/mute/", {"key": "disabled_room:dev_1"})
    assert "1 muted" in text_of(console)
    registry.enable("dev_1", now=AT_NOON)
    assert "Room Dev_1" not in text_of(console)


def test_many_disabled_rooms_are_counted(db: None) -> None:
    for number in range(8):
        create_room(f"r{number}")
        registry.disable(f"r{number}", reason="The channel is archived.", now=AT_NOON)
    found = issues(rooms=registry.find_rooms().values())
    assert [issue.text.partition(":")[0] for issue in found] == [
        *(f"Room R{number}" for number in range(5)),
        "3 other rooms disabled",
    ]


def test_missing_sweep_is_an_issue() -> None:
    for last, text in ((None, "No sweep"), (timedelta(minutes=4), "No sweep for 4 min")):
        work = replace(NO_WORK, last_sweep=AT_NOON - last if last else None)
        (issue,) = issues(backlog=work)
        assert issue.text == f"{text}: missed wake-ups aren't picked up."
        assert not issue.is_mutable


def test_overdue_work_is_an_issue() -> None:
    waiting = replace(NO_WORK, due=3, oldest_due_at=AT_NOON - timedelta(minutes=6))
    (issue,) = issues(backlog=waiting)
    assert (issue.color, issue.text) == ("danger", "Deliveries overdue by 6 min")


def test_missing_sweep_comes_before_failures() -> None:
    late = replace(NO_WORK, last_sweep=None)
    found = issues(backlog=late, failures=failed(F.PROVIDER_ERROR, 1_234))
    assert [c.color for c in found] == ["danger", "warning"]
    assert "1,234 failures" in found[1].text


def test_outage_is_one_card_with_all_that_it_caused(console: Client) -> None:
    now = utc_now()
    circuit = CircuitState(
        name="sendgrid:1",
        state=State.OPEN,
        failures=20,
        successes=0,
        opened_at=now - timedelta(minutes=5),
        open_until=now + timedelta(minutes=8),
        reason="Provider error. (500)",
    )
    broken = provider(Health.OPEN, circuits=(circuit,))
    work = replace(NO_WORK, held_on={(Channel.EMAIL, WaitReason.CIRCUIT_OPEN): 7})
    failures = replace(
        failed(F.PROVIDER_ERROR, 24),
        groups=(*failed(F.PROVIDER_ERROR, 24).groups, *failed(F.EXPIRED, 15).groups),
    )
    incident: Any = {"_id": ObjectId(), "kind": "breaker_open", "key": "rule:sendgrid:1"}
    other: Any = {"_id": ObjectId(), "kind": "breaker_open", "key": "rule:fcm:1"}
    [outage] = problems.find_outages(
        [broken, provider(Health.HEALTHY, name="smtp")],
        work=work,
        failures=failures,
        incidents=[other, incident],
        now=now,
    )
    assert (outage.title, outage.reason) == ("SendGrid's circuit is open", "Provider error, 500")
    assert outage.since == now - timedelta(minutes=5)
    assert outage.incident is incident
    facts = {fact.label: strip_tags(fact.value) for fact in outage.facts}
    assert facts["Held"] == "7"
    assert facts["Failed, 24 h"] == "24"
    assert facts["Expired while held, 24 h"] == "15"
    assert facts["Next probe"].endswith("in 8 min")


ALL, EMAIL, PUSH, WELCOME = (ObjectId() for _ in range(4))
RULES = {
    ALL: AlertRule(id=ALL, kind="failures", threshold=10),
    EMAIL: AlertRule(id=EMAIL, kind="failures", threshold=10, channel="email"),
    PUSH: AlertRule(id=PUSH, kind="failures", threshold=10, channel="push"),
    WELCOME: AlertRule(id=WELCOME, kind="failures", threshold=10, type="welcome"),
}


def joined(*kinds: str | ObjectId, **given: Any) -> problems.Matters:
    """Join incidents of these kinds, or of these rules about failures."""
    incidents = [
        {"_id": n, "rule_id": kind, "kind": "failures"}
        if isinstance(kind, ObjectId)
        else {"_id": n, "rule_id": ObjectId(), "kind": kind}
        for n, kind in enumerate(kinds)
    ]
    fields: dict[str, Any] = {"outages": (), "issues": (), "failures": NO_FAILURES}
    return problems.join_matters(incidents=incidents, rules=RULES, **fields | given)


@each_case(
    "kind, key, is_joined",
    [
        (ALL, "email:provider_error", True),
        (ALL, "push:bounced", True),
        (EMAIL, "email:provider_error", True),
        (EMAIL, "push:provider_error", False),
        (WELCOME, "email:provider_error", False),
        (ALL, "sweep", False),
        # Its rule was deleted.
        (ObjectId(), "email:provider_error", True),
        ("sweep_overdue", "sweep", True),
        ("sweep_overdue", "overdue", False),
        ("work_overdue", "overdue", True),
        ("callback_disabled", "email:provider_error", False),
        ("key_expiring", "sweep", False),
    ],
)
def test_one_matter_has_one_card(kind: Any, key: str, is_joined: bool) -> None:
    is_outage = key in {"sweep", "overdue"}
    issue = problems.Issue(key=key, color="danger", text="", advice="", is_outage=is_outage)
    found = joined(kind, issues=[issue])
    assert [list(alert.issues) for alert in found.alerts] == [[issue] if is_joined else []]
    assert list(found.issues) == ([] if is_joined else [issue])


def test_issue_stands_in_one_of_several_alerts() -> None:
    issue = problems.Issue(key="email:bounced", color="danger", text="", advice="")
    found = joined(EMAIL, ALL, issues=[issue])
    assert [len(alert.issues) for alert in found.alerts] == [1, 0]


@each_case(
    "rule, code, count, is_explained",
    [
        (ALL, F.PROVIDER_ERROR, 24, True),
        (EMAIL, F.EXPIRED, 24, True),
        (PUSH, F.PROVIDER_ERROR, 24, False),
        (WELCOME, F.PROVIDER_ERROR, 24, False),
        (ObjectId(), F.PROVIDER_ERROR, 24, False),
        # The provider is out, but these failures aren't its doing.
        (ALL, F.BOUNCED, 24, False),
    ],
)
def test_alert_about_failures_of_an_outage_is_part_of_its_card(
    rule: ObjectId, code: FailureCode, count: int, is_explained: bool
) -> None:
    [outage] = problems.find_outages(
        [provider(Health.OPEN)], work=NO_WORK, failures=NO_FAILURES, incidents=(), now=AT_NOON
    )
    found = joined(rule, outages=[outage], failures=failed(code, count))
    assert len(found.outages[0].consequences) == is_explained
    assert len(found.alerts) == (not is_explained)
    assert found.outages[0].unacknowledged == ([0] if is_explained else [])


def test_alert_is_part_of_one_card_though_two_providers_of_a_channel_are_out() -> None:
    healths = [provider(Health.PAUSED), provider(Health.OPEN, name="smtp")]
    outages = problems.find_outages(
        healths, work=NO_WORK, failures=NO_FAILURES, incidents=(), now=AT_NOON
    )
    found = joined(ALL, EMAIL, outages=outages, failures=failed(F.PROVIDER_ERROR, 24))
    cards = {
        outage.provider: [each["_id"] for each in outage.consequences] for outage in found.outages
    }
    assert cards == {"smtp": [0, 1], "sendgrid": []}, "the one that failed"
    assert list(found.alerts) == []


def test_many_other_failures_beside_an_outage_stay_an_alert() -> None:
    [outage] = problems.find_outages(
        [provider(Health.OPEN)], work=NO_WORK, failures=NO_FAILURES, incidents=(), now=AT_NOON
    )
    groups = (*failed(F.PROVIDER_ERROR, 24).groups, *failed(F.BOUNCED, 11).groups)
    failures = replace(NO_FAILURES, groups=groups)
    found = joined(ALL, outages=[outage], failures=failures)
    assert (len(found.alerts), found.outages[0].consequences) == (1, [])


def test_card_of_an_outage_acknowledges_all_its_alerts(console: Client) -> None:
    given = [
        incidents.record(
            Finding(rule_id=ObjectId(), kind=kind, subject="sendgrid:1", title="x", detail=""),
            now=utc_now(),
        )
        for kind in (AlertKind.BREAKER_OPEN, AlertKind.FAILURES)
    ]
    first, second = (item["_id"] for item in given if item is not None)
    console.post(f"/admin/analytics/incident/{first}/acknowledge/", {"also": [str(second), "x"]})
    assert [incident.get("acknowledged_by") for incident in incidents.open_incidents()] == [
        "maria"
    ] * 2


def test_planned_pause_is_resumed_from_home(console: Client, settings: Any) -> None:
    settings.EMAIL_PROVIDERS, settings.SENDGRID_URL = ("sendgrid",), "https://api.sendgrid.com"
    provider_pauses.pause("sendgrid", by="maria", reason="OPS-7", now=utc_now())
    collection("heartbeats").insert_one({"_id": "sweep", "at": utc_now()})
    rollup.run(now=utc_now())
    page = text_of(console)
    assert "status-paused" in page
    assert page.count("SendGrid paused by maria (OPS-7)</h3>") == 1
    answer = console.post(RESUME, {"next": "/admin/"})
    assert answer["Location"] == "/admin/"
    assert "paused by maria" not in text_of(console)


def test_problem_is_muted_for_a_day_and_unmuted(console: Client) -> None:
    now = utc_now()
    for _ in range(3):
        fail(now, F.REJECTED)
    collection("heartbeats").insert_one({"_id": "sweep", "at": now})
    rollup.run(now=now + timedelta(seconds=1))
    assert "Email: 3 failures in 1 h (100 %)" in text_of(console)
    assert "status-degraded" in text_of(console)
    url = "/admin/analytics/incident/mute/"
    console.post(url, {"key": "email:rejected"})
    page = text_of(console)
    assert "1 muted" in page
    assert "Muted by maria until" in page
    assert "status-operational" in page
    [stored] = collection("muted_problems").find()
    assert stored["until"] - stored["at"] == timedelta(hours=24)
    console.post(url, {"key": "email:rejected", "unmute": "yes"})
    assert "status-degraded" in text_of(console)
    console.post(url, {"key": "<script>"})
    assert collection("muted_problems").count_documents({}) == 0
    viewer = signed_in(make_staff("vera", "notifications.view_notification"))
    assert viewer.post(url, {"key": "email:rejected"}).status_code == 403


def test_failures_of_the_examples_are_no_problem(console: Client) -> None:
    now = utc_now()
    for _ in range(4):
        fail(now, F.WINDOW_CLOSED, source="examples")
    collection("heartbeats").insert_one({"_id": "sweep", "at": now})
    rollup.run(now=now + timedelta(seconds=1))
    assert "status-operational" in text_of(console)


def provider(health: Health, *, channel: Channel = Channel.EMAIL, **fields: Any) -> ProviderHealth:
    unset = dict.fromkeys(("rate", "rate_status", "last_success", "last_failure", "p95"))
    counts = dict.fromkeys(("attempts", "failures", "recent_attempts", "recent_failures"), 0)
    defaults = {"name": "sendgrid", "account": "sendgrid:1", "circuits": (), "pause": None}
    values = {**defaults, **unset, **counts, **fields}
    return ProviderHealth(health=health, channel=channel, **values)


def status(*providers: ProviderHealth, **fields: Any) -> tuple[ServiceState, list[str]]:
    found = problems.service_status(
        **({"issues": [], "providers": providers, "incidents": []} | fields)
    )
    return found.state, [cause.text for cause in found.causes]


def test_service_is_operational_without_a_problem() -> None:
    assert status(provider(Health.HEALTHY)) == (ServiceState.OPERATIONAL, [])


def test_channel_without_an_available_provider_is_an_outage() -> None:
    pause = Pause(provider="sendgrid", since=AT_NOON, by="maria", reason="OPS-12")
    paused, broken = provider(Health.PAUSED, pause=pause), provider(Health.OPEN, name="smtp")
    cause = "SendGrid paused by maria (OPS-12)"
    # Staff know of a planned pause: it isn't red.
    assert status(paused) == (ServiceState.PAUSED, ["Email isn't sent"])
    healthy = provider(Health.HEALTHY, name="smtp")
    assert status(paused, healthy) == (ServiceState.PAUSED, [cause])
    assert status(paused, broken) == (ServiceState.OUTAGE, ["Email isn't sent"])
    assert status(healthy, broken)[0] is ServiceState.DEGRADED


def test_provider_whose_attempts_fail_degrades_the_service() -> None:
    failing = provider(Health.FAILING, recent_attempts=36, recent_failures=35)
    assert status(failing) == (ServiceState.DEGRADED, ["SendGrid: 35 of 36 attempts failed"])


def test_work_that_is_not_done_is_an_outage() -> None:
    backlog = replace(NO_WORK, oldest_due_at=AT_NOON - timedelta(minutes=30))
    found = issues(backlog=backlog)
    assert status(issues=found) == (ServiceState.OUTAGE, ["Deliveries overdue by 30 min"])


def test_open_alert_degrades_the_service() -> None:
    assert status(incidents=[{}]) == (ServiceState.DEGRADED, ["1 open alert, listed below"])


def hold(now: datetime) -> None:
    """Store a delivery whose provider is paused."""
    claimed = factories.claimed(at=now, created_at=now)
    reason, until = WaitReason.PROVIDER_PAUSED, now + timedelta(minutes=1)
    code = F.CHANNEL_UNAVAILABLE
    held = NotSent(claimed, S.PENDING, code, "Provider paused.", until, reason)
    leases.settle_not_sent([held], now=now)


def test_held_deliveries_are_counted_by_reason_with_their_list(console: Client) -> None:
    hold(utc_now())
    page = text_of(console)
    assert "Provider paused</a> <strong>1</strong>" in page
    assert "/admin/notifications/waitingnotification/?reason=provider_paused" in page


def test_operational_home_says_what_an_ended_outage_still_holds(console: Client) -> None:
    collection("heartbeats").insert_one({"_id": "sweep", "at": utc_now()})
    for _ in range(2):
        hold(utc_now())
    rollup.run(now=utc_now())
    page = text_of(console)
    assert "Operational" in page
    assert "2 deliveries</a> held in an outage: sent at the next check." in page
    assert "nothing waits for you" not in page
    assert len(listed(console, "/admin/notifications/waitingnotification/")) == 2


W = WaitReason


@each_case(
    "held_on, said",
    [
        ({(Channel.EMAIL, W.CIRCUIT_OPEN): 46}, "46 deliveries"),
        ({(Channel.PUSH, W.PROVIDER_PAUSED): 1}, "1 delivery"),
        (
            {(Channel.PUSH, W.PROVIDER_UNAVAILABLE): 1, (Channel.EMAIL, W.CIRCUIT_OPEN): 1},
            "2 deliveries",
        ),
        ({(Channel.EMAIL, W.CIRCUIT_OPEN): 1_000}, "1,000+ deliveries"),
        ({(Channel.EMAIL, W.QUIET_HOURS): 5, (Channel.EMAIL, W.OVER_LIMIT): 2}, ""),
        ({(Channel.EMAIL, W.RATE_LIMITED): 5, (Channel.IN_APP, W.STEP): 2}, ""),
        ({}, ""),
    ],
)
def test_only_what_an_outage_held_is_said(
    held_on: dict[tuple[Channel, WaitReason], int], said: str
) -> None:
    assert home._held_over(replace(NO_WORK, held_on=held_on)) == said


def test_each_tile_leads_to_what_it_counts(console: Client) -> None:
    now = utc_now()
    later = now + timedelta(hours=1)
    for _ in range(2):
        factories.accepted(created_at=now, send_at=later, scheduled_at=later)
    factories.accepted(created_at=now)
    hold(now)
    for _ in range(3):
        factories.settled(S.PENDING, at=now, created_at=now)
    factories.settled(S.UNKNOWN, at=now, created_at=now)
    tiles = console.get("/admin/").context["backlog_tiles"]
    counts = {tile["label"]: tile["value"] for tile in tiles if tile["url"]}
    assert counts == {"Queued": "1", "Retrying": "3", "Unknown": "1", "Not tried yet": "3"}
    for tile in tiles:
        if tile["url"]:
            assert str(len(listed(console, tile["url"]))) == tile["value"], tile["label"]


def test_home_refreshes_by_itself(console: Client) -> None:
    assert 'hx-get="/admin/refresh/"' in text_of(console)
    answer = console.get("/admin/refresh/")
    assert "service-status" in answer.content.decode()
    assert "<html" not in answer.content.decode()
    assert signed_in(make_staff("nobody")).get("/admin/refresh/").status_code == 403


def test_incident_leads_to_its_evidence(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "MAX_INCIDENTS", len(AlertKind))
    pages = set()
    for kind in AlertKind:
        subject = {
            AlertKind.BREAKER_OPEN: "sendgrid:1",
            AlertKind.APPROVAL_OVERRIDDEN: str(begun()),
            AlertKind.APPROVAL_STOPPED: str(begun()),
            AlertKind.EMERGENCY_CHANGE: "order_shipped@20261129T010000",
        }.get(kind, "all")
        finding = Finding(
            rule_id=ObjectId(),
            kind=kind,
            subject=subject,
            title="Something",
            detail="Details.",
            broken_channel="email",
        )
        incident = incidents.record(finding, now=utc_now())
        assert incident is not None
        found = [item.url for item in evidence_of(incident, None)]
        assert found, kind
        pages.update(found)
    home_page = text_of(console)
    for url in pages:
        assert escape(url) in home_page
        assert console.get(url.partition("#")[0]).status_code == 200
