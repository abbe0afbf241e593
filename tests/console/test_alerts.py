"""Alert rules and incidents in the console."""

from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from domain.time import utc_now
from monitoring import alert_rules, incidents
from monitoring.incidents import Finding
from monitoring.models import AlertKind, AlertRule, Incident
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.mongo.explained_reads import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

RULES, INCIDENTS = "/admin/analytics/alertrule/", "/admin/analytics/incident/"
RULE = {"name": "Mail", "kind": "failures", "channel": "email", "type": "mfa_code"}
RULE |= {"threshold": "5", "window_minutes": "30", "is_enabled": "on"}


def opened(subject: str = "all") -> ObjectId:
    texts = {"title": "12 final failures", "detail": "In the last hour."}
    finding = Finding(rule_id=ObjectId(), kind=AlertKind.FAILURES, subject=subject, **texts)
    incident = incidents.record(finding, now=utc_now())
    assert incident is not None
    return ObjectId(incident["_id"])


def test_rule_is_created_changed_and_deleted(console: Client) -> None:
    assert console.post(f"{RULES}add/", RULE).status_code == 302
    rule = AlertRule.objects.get(name="Mail")
    assert (rule.channel, rule.type, rule.threshold) == ("email", "mfa_code", 5)
    assert "more than 5 in 30 min" in console.get(RULES).content.decode()
    changed = RULE | {"kind": "work_overdue", "threshold": "9"}
    console.post(f"{RULES}{rule.pk}/change/", changed)
    rule = AlertRule.objects.get(pk=rule.pk)
    assert (rule.kind, rule.channel, rule.type, rule.threshold) == ("work_overdue", None, None, 9)
    console.post(f"{RULES}{rule.pk}/delete/", {"post": "yes"})
    assert not AlertRule.objects.filter(pk=rule.pk).exists()
    assert LogEntry.objects.count() == 3


@each_case(
    "wrong", [{"threshold": "-1"}, {"threshold": "1000"}, {"window_minutes": "0"}, {"type": "nope"}]
)
def test_invalid_rule_is_refused(console: Client, wrong: dict[str, str]) -> None:
    before = AlertRule.objects.count()
    assert console.post(f"{RULES}add/", RULE | wrong).status_code == 200
    assert AlertRule.objects.count() == before


def test_shipped_rules_are_listed(console: Client) -> None:
    alert_rules.add_missing_rules()
    page = console.get(RULES).content.decode()
    assert "more than 10 in 60 min" in page
    assert "immediately" in page


def test_incidents_are_listed_and_filtered(console: Client) -> None:
    opened()
    resolved = opened("other")
    end = {"is_open": False, "resolved_at": utc_now()}
    collection("incidents").update_one({"_id": resolved}, {"$set": end})
    assert len(console.get(INCIDENTS).context["cl"].result_list) == 2
    (row,) = console.get(f"{INCIDENTS}?state=resolved").context["cl"].result_list
    assert row.pk == resolved
    for plan in plans(console, f"{INCIDENTS}?state=open", of="incidents"):
        assert not {"COLLSCAN", "SORT"} & plan.stages


def test_selected_incidents_are_acknowledged_and_audited(console: Client) -> None:
    ids = [opened(), opened("other")]
    action: dict[str, Any] = {"action": "acknowledge_selected", "_selected_action": ids}
    for _ in range(2):
        console.post(INCIDENTS, action)
    assert {item.acknowledged_by for item in Incident.objects.all()} == {"maria"}
    assert [e.get_change_message() for e in LogEntry.objects.all()] == ["Acknowledged."] * 2


def test_acknowledging_requires_a_permission_and_an_incident(console: Client) -> None:
    url = f"{INCIDENTS}{opened()}/acknowledge/"
    viewer = signed_in(make_staff("eva", "analytics.view_incident"))
    assert viewer.get(INCIDENTS).status_code == 200
    assert viewer.post(url).status_code == 403
    assert console.post(f"{INCIDENTS}nonsense/acknowledge/").status_code == 302
    assert Incident.objects.get().acknowledged_by is None


def test_incident_has_a_page_with_its_cause_and_notes(console: Client) -> None:
    key = opened()
    listed = console.get(INCIDENTS)
    assert f"/admin/analytics/incident/{key}/change/" in listed.content.decode()
    assert listed.context["cl"].open_incidents == ()
    resolved = opened("sendgrid:1")
    collection("incidents").update_one({"_id": resolved}, {"$set": {"is_open": False}})
    above = console.get(INCIDENTS).context["cl"].open_incidents
    assert [item["_id"] for item in above] == [key], "it stands below a resolved one"
    page = f"/admin/analytics/incident/{key}/change/"
    text = console.get(page).content.decode()
    assert "What it caused" in text
    note = {"note": "<b>Called SendGrid</b> " + "x" * 600}
    for form in (note, {"note": "  "}):
        console.post(f"/admin/analytics/incident/{key}/note/", form)
    text = console.get(page).content.decode()
    assert "&lt;b&gt;Called SendGrid&lt;/b&gt;" in text
    [stored] = collection("incidents").find({"_id": key})
    assert [(note["by"], len(note["text"])) for note in stored["notes"]] == [("maria", 500)]
    answer = console.post(f"/admin/analytics/incident/{key}/acknowledge/", {"next": page})
    assert answer["Location"] == page
    assert "Acknowledged by maria" in console.get(page).content.decode()
    assert (
        "Incident not found"
        in console.get(
            f"/admin/analytics/incident/{ObjectId()}/change/", follow=True
        ).content.decode()
    )


def test_viewers_see_an_incident_and_change_nothing(db: None) -> None:
    key = opened()
    viewer = signed_in(make_staff("vera", "analytics.view_incident"))
    text = viewer.get(f"/admin/analytics/incident/{key}/change/").content.decode()
    assert "Add note" not in text
    assert viewer.post(f"/admin/analytics/incident/{key}/note/", {"note": "x"}).status_code == 403


def test_rule_and_incident_of_a_newer_version_are_shown_as_they_are(console: Client) -> None:
    rule = {"name": "Bees", "kind": "bees_left", "threshold": 7, "window_minutes": 60}
    rule_id = collection("alert_rules").insert_one({**rule, "is_enabled": True}).inserted_id
    key = opened()
    collection("incidents").update_one({"_id": key}, {"$set": {"kind": "bees_left"}})
    page = console.get("/admin/analytics/alertrule/").content.decode()
    assert "bees_left" in page
    assert "more than 7 min" not in page
    page = console.get(f"/admin/analytics/incident/{key}/change/").content.decode()
    assert "doesn't know the condition <code>bees_left</code>" in page
    for path in ("/admin/analytics/incident/", "/admin/"):
        assert console.get(path).status_code == 200
    form = f"/admin/analytics/alertrule/{rule_id}/change/"
    page = console.get(form).content.decode()
    assert 'name="_save"' not in page
    assert console.post(form, {"name": "Wasps", "kind": "failures"}).status_code == 403
