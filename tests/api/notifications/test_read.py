"""Reading notifications: one, its attempts, and lists."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import Category, DeliveryStatus
from domain.time import utc_now
from domain.wait_reasons import WaitReason
from notifications.store import leases, receipts
from notifications.store.claims import NotSent
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pages
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case


def many(app: App, count: int, **fields: Any) -> list[str]:
    """Store notifications, one a minute, and return their IDs, newest first."""
    start = utc_now() - timedelta(days=1)
    times = [start + timedelta(minutes=n) for n in range(count)]
    accepted = [factories.accepted(client_id=app.id, created_at=at, **fields) for at in times]
    return [str(document["_id"]) for document in accepted][::-1]


def ids(answer: Any) -> list[str]:
    return [result["id"] for result in answer.json()["results"]]


def test_notification_is_read_as_accepted(app: App) -> None:
    accepted = app.notify(user_id="ada", external_id="e-1").json()
    assert accepted.pop("warnings") == []  # Only an acceptance has them
    assert app.get(f"/notifications/{accepted['id']}").json() == accepted


def wait_reason(app: App, document: Any) -> str | None:
    (delivery,) = app.get(f"/notifications/{document['_id']}").json()["delivery"]
    reason: str | None = delivery["wait_reason"]
    return reason


def test_delivery_says_why_it_is_not_sent_now(app: App) -> None:
    now, mine = utc_now(), {"client_id": app.id}
    later = now + timedelta(hours=1)
    assert wait_reason(app, factories.accepted(created_at=now, send_at=later, **mine)) == "schedule"
    assert wait_reason(app, factories.accepted(created_at=now, **mine)) == "worker"
    retried = factories.settled(DeliveryStatus.PENDING, at=now, created_at=now, **mine)
    assert wait_reason(app, retried) == "retry"
    sent = factories.settled(DeliveryStatus.SENT, at=now, created_at=now, **mine)
    assert wait_reason(app, sent) is None
    claim = factories.claimed(at=now, created_at=now, **mine)
    held = NotSent(
        claimed=claim,
        status=DeliveryStatus.PENDING,
        code=FailureCode.CHANNEL_UNAVAILABLE,
        reason="Paused.",
        held_reason=WaitReason.PROVIDER_PAUSED,
        next_attempt_at=later,
    )
    leases.settle_not_sent([held], now=now)
    assert wait_reason(app, factories.read(claim.notification_id)) == "provider_paused"


def test_attempts_have_the_provider_response(app: App) -> None:
    document = factories.settled(DeliveryStatus.FAILED, client_id=app.id)
    (attempt,) = app.get(f"/notifications/{document['_id']}/attempts").json()["results"]
    assert attempt["attempt_number"] == 1
    assert attempt["status"] == "failed"
    assert attempt["error_code"] == "provider_error"
    assert attempt["platform_response"] == {"status": 503}
    assert attempt["duration_ms"] == 12


def test_list_is_newest_first_and_paginated(app: App) -> None:
    expected = many(app, 7)
    found = [
        [notification["id"] for notification in page]
        for page in pages(app.get, "/notifications", limit=3)
    ]
    assert found == [expected[:3], expected[3:6], expected[6:]]


@pytest.fixture
def several(app: App) -> None:
    factories.settled(DeliveryStatus.FAILED, client_id=app.id, entity_id="order-1")
    factories.accepted(
        client_id=app.id, channels=(Channel.IN_APP,), external_id="e-1", source="shop"
    )
    factories.accepted(client_id=app.id, user_id="eve", type="mfa_code")


@pytest.mark.usefixtures("several")
@each_case(
    "filters, count",
    [
        ({"user_id": "ada"}, 2),
        ({"user_id": "eve"}, 1),
        ({"type": "payment_confirmed"}, 2),
        ({"type": "mfa_code"}, 1),
        ({"category": "transactional"}, 3),
        ({"category": "marketing"}, 0),
        ({"channel": "email"}, 2),
        ({"channel": "in_app"}, 1),
        ({"status": "delivered"}, 1),
        ({"status": "failed"}, 1),
        ({"delivery_status": "failed"}, 1),
        ({"channel": "email", "delivery_status": "delivered"}, 0),
        ({"entity_id": "order-1"}, 1),
        ({"external_id": "e-1"}, 1),
        ({"source": "shop"}, 1),
        ({"source": "sho"}, 0),
        ({"user_id": "ada", "unread": "true"}, 1),
        ({"created_after": "2020-01-01T00:00:00Z"}, 3),
        ({"created_before": "2020-01-01T00:00:00Z"}, 0),
        ({"created_after": "2020-01-01T00:00:00+02:00"}, 3),
    ],
)
def test_filters_narrow_the_list(app: App, filters: dict[str, str], count: int) -> None:
    assert len(ids(app.get("/notifications", **filters))) == count


def test_category_that_is_in_no_copy_yet_is_found(app: App) -> None:
    assert ids(app.get("/notifications", category="marketing")) == []
    # By a process that has stored the type, but no new version of its cache.
    collection("notification_types").update_one(
        {"_id": "payment_confirmed"},
        {"$set": {"category": "marketing"}, "$addToSet": {"categories": "marketing"}},
    )
    stored = factories.accepted(client_id=app.id, category=Category.MARKETING)
    assert ids(app.get("/notifications", category="marketing")) == [str(stored["_id"])]


def test_recipient_history_has_only_theirs(app: App) -> None:
    mine = many(app, 2)
    many(app, 1, user_id="eve")
    assert ids(app.get("/recipients/ada/notifications")) == mine
    assert app.get("/recipients/ada/notifications", user_id="eve").status_code == 400


def sent(app: App, *channels: Channel, **fields: Any) -> str:
    """Store a notification that was sent, and return its ID."""
    document = factories.accepted(client_id=app.id, channels=channels, **fields)
    for channel in channels:
        if channel is not Channel.IN_APP:
            begun = factories.start(factories.claim(document["_id"], channel=channel))
            leases.settle([factories.settlement(begun, DeliveryStatus.SENT)], now=utc_now())
    return str(document["_id"])


def test_client_marks_notifications_read_and_unread(app: App) -> None:
    notification_id = sent(app, Channel.WHATSAPP)
    assert ids(app.get("/notifications", unread="true")) == [notification_id]
    marked = app.post(f"/notifications/{notification_id}/read")
    assert (marked.status_code, marked.json()["is_read"]) == (200, True)
    assert marked.json()["read_at"] is not None
    assert app.post(f"/notifications/{notification_id}/read").json() == marked.json()
    assert app.get(f"/notifications/{notification_id}").json() == marked.json()
    assert ids(app.get("/notifications", unread="true")) == []
    unread = app.post(f"/notifications/{notification_id}/unread").json()
    assert (unread["is_read"], unread["read_at"]) == (False, None)
    assert app.post(f"/notifications/{notification_id}/unread").json() == unread
    assert ids(app.get("/recipients/ada/notifications", unread="true")) == [notification_id]


def test_client_reading_raises_the_in_app_delivery_alone(app: App) -> None:
    notification_id = sent(app, Channel.EMAIL, Channel.IN_APP)
    shown = app.post(f"/notifications/{notification_id}/read").json()
    assert [d["status"] for d in shown["delivery"]] == ["sent", "read"]


def test_unread_combines_with_the_other_filters(app: App) -> None:
    mail, push = sent(app, Channel.EMAIL), sent(app, Channel.PUSH)
    factories.accepted(client_id=app.id)
    assert ids(app.get("/notifications", unread="true")) == [push, mail]
    assert ids(app.get("/notifications", unread="true", channel="push")) == [push]
    assert ids(app.get("/notifications", unread="true", delivery_status="failed")) == []


@each_case("action", ["read", "unread"])
def test_unknown_notification_is_not_marked(app: App, other_app: App, action: str) -> None:
    theirs = sent(other_app, Channel.EMAIL)
    for name in (theirs, str(ObjectId()), "x", "%24ne", "a" * 25):
        assert app.post(f"/notifications/{name}/{action}").status_code == 404
    notification_id = sent(app, Channel.EMAIL)
    answer = app.post(f"/notifications/{notification_id}/{action}?user_id=ada")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter")
    assert app.get(f"/notifications/{notification_id}").json()["is_read"] is False


def test_read_all_marks_what_was_sent_on_any_channel(app: App, other_app: App) -> None:
    for channels in ([Channel.IN_APP, Channel.EMAIL], [Channel.EMAIL], [Channel.PUSH]):
        sent(app, *channels)
    factories.accepted(client_id=app.id)
    sent(other_app, Channel.IN_APP)
    assert app.post("/recipients/ada/notifications/read-all").json() == {"updated": 3}
    assert app.post("/recipients/ada/notifications/read-all").json() == {"updated": 0}
    unsent, *others = app.get("/recipients/ada/notifications").json()["results"]
    assert unsent["is_read"] is False
    assert all(other["is_read"] and other["read_at"] for other in others)
    assert app.get("/recipients/ada/notifications", unread="true").json()["results"] == []


def test_large_numbers_are_returned_unchanged(app: App) -> None:
    data = {"order_id": 2**63 - 1, "video_title": "S", "amount": -(2**63), "list": [2**40, 1.5]}
    accepted = app.notify(data=data).json()
    assert accepted["data"] == data
    assert app.get(f"/notifications/{accepted['id']}").json()["data"] == data


def test_list_is_ordered_by_the_scheduled_time(app: App) -> None:
    now = utc_now()
    later, sooner = (
        str(factories.accepted(client_id=app.id, send_at=at, scheduled_at=at)["_id"])
        for at in (now + timedelta(days=2), now + timedelta(days=1))
    )
    app.notify()
    assert ids(app.get("/notifications", ordering="scheduled_at")) == [sooner, later]
    assert ids(app.get("/notifications", ordering="-scheduled_at")) == [later, sooner]
    before = (now + timedelta(hours=36)).isoformat()
    assert ids(app.get("/notifications", scheduled_before=before)) == [sooner]
    after = {"scheduled_after": before, "status": "created,queued"}
    assert ids(app.get("/notifications", **after)) == [later]


def test_several_statuses_are_listed(app: App) -> None:
    failed = factories.settled(DeliveryStatus.FAILED, client_id=app.id)
    sent = factories.settled(DeliveryStatus.SENT, client_id=app.id)
    factories.accepted(client_id=app.id)
    expected = {str(failed["_id"]), str(sent["_id"])}
    repeated = app.http.get(
        "/api/v1/notifications?status=failed&status=sent", headers=app._headers({})
    )
    assert {*ids(app.get("/notifications", status="failed,sent"))} == {*ids(repeated)} == expected


def test_response_has_only_the_requested_fields(app: App) -> None:
    accepted = app.notify(user_id="ada").json()
    fields = "id,status,delivery"
    expected = {name: accepted[name] for name in ("id", "status", "delivery")}
    assert app.get(f"/notifications/{accepted['id']}", fields=fields).json() == expected
    assert app.get("/notifications", fields=fields).json()["results"] == [expected]
    history = app.get("/recipients/ada/notifications", fields=fields)
    assert history.json()["results"] == [expected]


def test_unknown_field_of_one_notification_is_refused(app: App) -> None:
    accepted = app.notify().json()
    answer = app.get(f"/notifications/{accepted['id']}", fields="statuss")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/fields", "unknown_field")
    assert "`statuss`" in error["detail"]
    other = app.get(f"/notifications/{accepted['id']}", field="status")
    assert (other.status_code, other.json()["code"]) == (400, "unknown_parameter")


def test_whether_it_can_be_retried_is_read_only_if_requested(app: App) -> None:
    document = factories.settled(DeliveryStatus.FAILED, client_id=app.id)
    path = f"/notifications/{document['_id']}"
    with plans("suppressions") as found:
        assert app.get(path, fields="id").json() == {"id": str(document["_id"])}
    assert found == []
    assert app.get(path, fields="can_retry").json() == {"can_retry": True}


def test_attempt_has_the_times_of_its_receipts(app: App) -> None:
    document = factories.settled(DeliveryStatus.SENT, client_id=app.id)
    at = document["sent_at"] + timedelta(seconds=5)
    reference = AttemptReference(document["_id"], Channel.EMAIL, 1)
    for status in (DeliveryStatus.DELIVERED, DeliveryStatus.READ):
        receipt = DeliveryReceipt(reference=reference, status=status, at=at, provider="sendgrid")
        assert receipts.apply_receipt(receipt, now=at)
    (attempt,) = app.get(f"/notifications/{document['_id']}/attempts").json()["results"]
    times = [datetime.fromisoformat(attempt[name]) for name in ("delivered_at", "opened_at")]
    assert (attempt["status"], times) == ("delivered", [at, at])
