"""Plans in the API: create, preview, acknowledge, and cancel what an entity no longer needs."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.channels import Channel
from domain.plans import Until
from domain.time import utc_now
from notifications import queries
from notifications.catalog import types
from notifications.catalog.plans import fallback_plan, stored_plan
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

PLAN = {
    "until": "read",
    "steps": [
        {"channels": ["in_app"]},
        {"after": 900, "channels": ["email"]},
        {"after": 3600, "channels": ["whatsapp"], "skip_if_late": 1800},
    ],
}
ADA = {"email": "ada@example.com", "phone": "+351912345678"}


def notify(app: App, **fields: Any) -> Any:
    body = {"user_id": "ada", "recipient": ADA, "channels": None, "plan": PLAN, **fields}
    return app.notify(**body)


def test_later_steps_wait_for_their_time(app: App) -> None:
    answer = notify(app)
    assert answer.status_code == 202
    body = answer.json()
    begun = datetime.fromisoformat(body["created_at"])
    in_app, mail, whatsapp = body["delivery"]
    assert (body["plan_until"], body["acted_at"]) == ("read", None)
    assert (in_app["status"], in_app["step"]) == ("delivered", 1)
    for later, step, seconds in ((mail, 2, 900), (whatsapp, 3, 3600)):
        opens_at = begun + timedelta(seconds=seconds)
        assert (later["status"], later["step"], later["wait_reason"]) == ("pending", step, "step")
        assert datetime.fromisoformat(later["opens_at"]) == opens_at
        assert later["next_attempt_at"] == later["opens_at"]


def test_plan_counts_from_the_scheduled_time(app: App) -> None:
    at = (utc_now() + timedelta(hours=1)).replace(microsecond=0)
    in_app, mail, _ = notify(app, scheduled_at=at.isoformat()).json()["delivery"]
    assert datetime.fromisoformat(in_app["opens_at"]) == at
    assert (in_app["wait_reason"], mail["wait_reason"]) == ("schedule", "step")
    assert datetime.fromisoformat(mail["opens_at"]) == at + timedelta(seconds=900)


def test_step_that_nothing_holds_back_begins_at_once(app: App) -> None:
    recipient = {"phone": ADA["phone"]}
    plan = {"steps": [{"channels": ["email"]}, {"after": 900, "channels": ["whatsapp"]}]}
    body = notify(app, plan=plan, recipient=recipient).json()
    assert [(d["status"], d["step"]) for d in body["delivery"]] == [
        ("suppressed", None),
        ("pending", None),
    ]
    assert body["plan_until"] is None


@each_case(
    "fields, expected",
    [
        ({"channels": ["email"]}, {"/plan": "conflict"}),
        ({"plan": PLAN | {"until": "opened"}}, {"/plan/until": "unknown_value"}),
        ({"plan": {"steps": PLAN["steps"][:1]}}, {"/plan/steps": "out_of_range"}),
        ({"plan": PLAN | {"pause": 1}}, {"/plan/pause": "unknown_field"}),
        ({"ttl": 1000}, {"/plan/steps/2/after": "after_expiry"}),
    ],
)
def test_invalid_plan_is_refused(
    app: App, fields: dict[str, Any], expected: dict[str, str]
) -> None:
    answer = notify(app, **fields)
    assert (answer.status_code, pointers(answer)) == (422, expected)


def test_plan_of_the_type_applies_unless_the_request_names_channels(app: App) -> None:
    plan = replace(fallback_plan(Channel.EMAIL, after=timedelta(minutes=5)), until=Until.READ)
    collection("notification_types").update_one(
        {"_id": "payment_confirmed"},
        {"$set": {"channels": ["in_app", "email"], "plan": stored_plan(plan)}},
    )
    types.invalidate_types()
    assert [d["step"] for d in notify(app, plan=None).json()["delivery"]] == [1, 2]
    named = app.notify(user_id="ada", recipient=ADA, channels=["in_app", "email"]).json()
    assert [d["step"] for d in named["delivery"]] == [None, None]


def test_preview_shows_the_steps(app: App) -> None:
    body = {"type": "payment_confirmed", "user_id": "ada", "recipient": ADA, "plan": PLAN}
    body |= {"content": {"subject": "Paid", "body": "Thank you."}}
    shown = app.post("/notifications/preview", body).json()
    steps = {
        channel["channel"]: (channel["would_send"], channel["step"])
        for channel in shown["channels"]
    }
    assert shown["plan_until"] == "read"
    assert steps == {
        "in_app": (True, 1),
        "email": (True, 2),
        "whatsapp": (True, 3),
        "push": (False, None),
        "sms": (False, None),
        "room": (False, None),
    }


def test_ack_is_recorded_once(app: App) -> None:
    notification_id = notify(app).json()["id"]
    first = app.post(f"/notifications/{notification_id}/ack")
    assert (first.status_code, first.json()["acted_at"] is None) == (200, False)
    assert (
        app.post(f"/notifications/{notification_id}/ack").json()["acted_at"]
        == first.json()["acted_at"]
    )
    assert first.json()["is_read"] is False


class TestCancel:
    def cancel(self, app: App, **fields: Any) -> Any:
        return app.post("/notifications/cancel", {"entity_id": "order-1", **fields})

    def test_everything_pending_of_an_entity_is_cancelled(self, app: App) -> None:
        notification_id = notify(app, entity_id="order-1").json()["id"]
        other = notify(app, entity_id="order-2").json()["id"]
        assert self.cancel(app).json() == {"cancelled": 1}
        statuses = [
            d["status"] for d in app.get(f"/notifications/{notification_id}").json()["delivery"]
        ]
        assert statuses == ["delivered", "cancelled", "cancelled"]
        assert app.get(f"/notifications/{other}").json()["is_pending"]
        assert self.cancel(app).json() == {"cancelled": 0}

    def test_type_and_recipient_select_some(self, app: App) -> None:
        notify(app, entity_id="order-1")
        assert self.cancel(app, type="mfa_code").json() == {"cancelled": 0}
        assert self.cancel(app, user_id="bob").json() == {"cancelled": 0}
        assert pointers(self.cancel(app, type="order")) == {"/type": "unknown_type"}
        assert self.cancel(app, type="PaymentConfirmed", user_id="ada").json() == {"cancelled": 1}

    def test_more_than_one_batch_is_cancelled(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "MAX_OF_ENTITY", 1)
        for name in ("ada", "bob"):
            factories.accepted(client_id=app.id, user_id=name, entity_id="order-1")
        assert self.cancel(app).json() == {"cancelled": 2}

    def test_pending_of_an_entity_is_an_index_scan(self, app: App) -> None:
        factories.accepted(client_id=app.id, entity_id="order-1")
        with plans("notifications") as found:
            self.cancel(app)
        assert "ntf_search" in str(found)
        assert "COLLSCAN" not in str(found)
