"""Cancel, retry, resend and reschedule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain import time
from domain.channels import Channel
from domain.content import Content
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.catalog.types import MASK
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.clients.api import App, pointers
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case


def act(app: App, notification_id: Any, action: str, body: Any = None) -> Any:
    return app.post(f"/notifications/{notification_id}/{action}", body)


def failed(app: App, **fields: Any) -> dict[str, Any]:
    return factories.settled(DeliveryStatus.FAILED, client_id=app.id, **fields)


class TestCancel:
    def test_pending_delivery_is_cancelled(self, app: App) -> None:
        accepted = app.notify().json()
        answer = act(app, accepted["id"], "cancel")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
        assert answer.json()["delivery"][0]["next_attempt_at"] is None

    def test_only_named_channels_are_cancelled(self, app: App) -> None:
        document = factories.accepted(client_id=app.id, channels=(Channel.EMAIL, Channel.WHATSAPP))
        body = act(app, document["_id"], "cancel", {"channels": ["whatsapp"]}).json()
        assert [d["status"] for d in body["delivery"]] == ["pending", "cancelled"]


class TestRetry:
    def test_failed_delivery_is_due_again(self, app: App) -> None:
        document = failed(app)
        answer = act(app, document["_id"], "retry")
        assert answer.status_code == 202
        body = answer.json()
        assert body["status"] == "retrying"
        assert body["failed_at"] is None
        delivery = body["delivery"][0]
        assert (delivery["attempt_count"], delivery["max_attempts"]) == (1, 5)
        assert factories.read(document["_id"])["due_at"] <= utc_now()

    @pytest.mark.parametrize("max_retries", [0, 1, 10])
    def test_retry_grants_the_notifications_retries_anew(self, app: App, max_retries: int) -> None:
        document = failed(app, max_attempts=1 + max_retries)
        delivery = act(app, document["_id"], "retry").json()["delivery"][0]
        assert (delivery["attempt_count"], delivery["max_attempts"]) == (1, 2 + max_retries)

    def test_only_failed_channels_are_retried(self, app: App) -> None:
        document = failed(app, channels=(Channel.EMAIL, Channel.IN_APP))
        body = act(app, document["_id"], "retry").json()
        assert [d["status"] for d in body["delivery"]] == ["pending", "delivered"]


SUPPRESSED = "The address is suppressed: hard bounce."
NEVER_RETRIED: dict[str, str | None] = {
    **dict.fromkeys(("sent", "queued", "claimed", "expired", "waiting and suppressed", "removed")),
    "destroyed": None,
    "suppressed": SUPPRESSED,
    "bounced": SUPPRESSED,
    "bounced in test mode": "The address bounced.",
    "muted": "The recipient muted this type.",
}
"""States, and why the address is refused."""


STATES: dict[str, dict[str, Any]] = {
    "sent": {"status": DeliveryStatus.SENT},
    "waiting": {"status": DeliveryStatus.PENDING},
    "waiting and suppressed": {"status": DeliveryStatus.PENDING},
    "claimed": {"status": DeliveryStatus.PENDING},
    "expired": {"expires_at": factories.NOON + timedelta(minutes=1)},
    "destroyed": {"content": Content(subject="Code", body=MASK, is_masked=True)},
    "bounced in test mode": {"is_test": True},
}
STORED: dict[str, dict[str, Any]] = {
    "bounced": {"delivery.0.failure_code": "bounced"},
    "bounced in test mode": {"delivery.0.failure_code": "bounced"},
    "removed": {"content_removed_at": factories.NOON},
}


def in_state(app: App, state: str) -> Any:
    """Return the ID of an email with this state, by default a failed email."""
    if state == "queued":
        return factories.accepted(client_id=app.id)["_id"]
    status = STATES.get(state, {}).get("status", DeliveryStatus.FAILED)
    fields = {name: value for name, value in STATES.get(state, {}).items() if name != "status"}
    notification_id = factories.settled(
        status,
        at=factories.NOON if "expires_at" in fields else utc_now(),
        client_id=app.id,
        **fields,
    )["_id"]
    if state == "claimed":
        factories.claim(notification_id, at=utc_now() + timedelta(minutes=6))
    if state in ("suppressed", "waiting and suppressed", "bounced"):
        factories.suppress()
    if state == "suppressed elsewhere":
        factories.suppress("else@example.com")
    if state == "suppressed for marketing":
        factories.suppress(reason=SuppressionReason.UNSUBSCRIBED, marketing_only=True)
    if state == "muted":
        muted = {"preferences": {"payment_confirmed": {"muted": True}}}
        collection("recipients").insert_one({"_id": "ada", "is_active": True, **muted})
    if state in STORED:
        collection("notifications").update_one({"_id": notification_id}, {"$set": STORED[state]})
    return notification_id


class TestCanRetry:
    @pytest.mark.parametrize(("state", "reason"), NEVER_RETRIED.items())
    def test_notification_that_cannot_be_retried_says_so_and_refuses(
        self, app: App, state: str, reason: str | None
    ) -> None:
        notification_id = in_state(app, state)
        assert app.get(f"/notifications/{notification_id}").json()["can_retry"] is False
        before = factories.read(notification_id)
        answer = act(app, notification_id, "retry")
        assert answer.status_code == 409, answer.content
        if reason is not None:
            told = answer.json()
            assert (told["code"], told["detail"]) == ("recipient_suppressed", reason)
        assert factories.read(notification_id) == before

    @pytest.mark.parametrize(
        "state", ["failed", "waiting", "suppressed elsewhere", "suppressed for marketing"]
    )
    def test_notification_that_can_be_retried_says_so_and_is_due(
        self, app: App, state: str
    ) -> None:
        notification_id = in_state(app, state)
        assert app.get(f"/notifications/{notification_id}").json()["can_retry"] is True
        assert act(app, notification_id, "retry").status_code == 202
        assert factories.read(notification_id)["due_at"] <= utc_now()

    def test_waiting_delivery_is_sent_now_with_the_attempts_it_has_left(self, app: App) -> None:
        notification_id = in_state(app, "waiting")
        (delivery,) = act(app, notification_id, "retry").json()["delivery"]
        assert (delivery["status"], delivery["attempt_count"]) == ("pending", 1)
        assert delivery["max_attempts"] == 4

    def test_suppressed_channel_is_left_out_of_all_and_refused_by_name(self, app: App) -> None:
        both = (Channel.EMAIL, Channel.WHATSAPP)
        document = failed(app, channels=both)
        collection("notifications").update_one(
            {"_id": document["_id"]}, {"$set": {"delivery.1.status": "failed"}}
        )
        factories.suppress()
        named = {"channels": ["email", "whatsapp"]}
        assert act(app, document["_id"], "retry", named).status_code == 409
        body = act(app, document["_id"], "retry").json()
        assert [d["status"] for d in body["delivery"]] == ["failed", "pending"]

    def test_list_reads_recipients_and_suppressions_once(self, app: App) -> None:
        for _ in range(3):
            in_state(app, "failed")
        for name, count in {"recipients": 1, "suppressions": 0}.items():
            with plans(name) as reads:
                listed = app.get("/notifications").json()["results"]
            assert [notification["can_retry"] for notification in listed] == [True] * 3
            assert len(reads) == count, "the suppressions come with the recipients"


class TestResend:
    def test_resend_creates_a_notification_with_the_same_content(self, app: App) -> None:
        document = failed(app, entity_id="order-1")
        answer = act(app, document["_id"], "resend")
        assert answer.status_code == 202
        again = answer.json()
        assert again["id"] != str(document["_id"])
        assert again["resent_from"] == str(document["_id"])
        assert again["content"]["body"] == document["content"]["body"]
        assert again["recipient"]["email"] == "ada@example.com"
        assert again["status"] == "queued"
        original = app.get(f"/notifications/{document['_id']}").json()
        assert original["resent_as"] == [again["id"]]
        assert original["status"] == "failed"

    def test_only_named_channels_are_resent(self, app: App) -> None:
        document = failed(app, channels=(Channel.EMAIL, Channel.IN_APP))
        again = act(app, document["_id"], "resend", {"channels": ["email"]}).json()
        assert again["channels"] == ["email"]

    def test_channel_of_no_delivery_is_refused(self, app: App) -> None:
        document = failed(app)
        answer = act(app, document["_id"], "resend", {"channels": ["whatsapp"]})
        assert answer.status_code == 409

    def test_sent_notification_can_be_resent(self, app: App) -> None:
        document = factories.settled(DeliveryStatus.SENT, client_id=app.id)
        assert act(app, document["_id"], "resend").status_code == 202


@each_case("action", ["cancel", "retry", "resend"])
@each_case(
    "body, problems",
    [
        ({"channels": ["fax"]}, {"/channels/0": "unknown_channel"}),
        ({"channels": []}, {"/channels": "no_channel"}),
        ({"channels": ["email", "email"]}, {"/channels/1": "duplicate_channel"}),
        ({"chanels": []}, {"/chanels": "unknown_field"}),
    ],
)
def test_invalid_body_of_an_action_is_refused(
    app: App, action: str, body: Any, problems: dict[str, str]
) -> None:
    document = failed(app)
    assert pointers(act(app, document["_id"], action, body)) == problems
    assert factories.read(document["_id"]) == document


@each_case("action", ["cancel", "retry", "resend"])
def test_channel_spellings_of_an_action_are_those_of_create(app: App, action: str) -> None:
    document = failed(app, channels=(Channel.EMAIL, Channel.IN_APP))
    answer = act(app, document["_id"], action, {"channels": ["in-app"]})
    assert answer.status_code == (202 if action == "resend" else 409)
    every = act(app, document["_id"], action, {"channels": "all"})
    assert every.status_code == (409 if action == "cancel" else 202)
    assert act(app, ObjectId(), action).status_code == 404


@each_case("action", ["retry", "resend"])
def test_destroyed_sensitive_data_blocks_retry_and_resend(app: App, action: str) -> None:
    masked = Content(subject="Code", body=MASK, is_masked=True)
    document = failed(app, type="mfa_code", content=masked)
    answer = act(app, document["_id"], action)
    assert (answer.status_code, answer.json()["code"]) == (409, "sensitive_data_destroyed")
    assert app.get("/notifications").json()["results"][0]["resent_as"] == []


DAY = timedelta(days=1)


def at(delta: timedelta) -> str:
    return (time.utc_now() + delta).isoformat().replace("+00:00", "Z")


def reschedule(app: App, notification_id: Any, scheduled_at: Any = None) -> Any:
    return act(app, notification_id, "reschedule", {"scheduled_at": scheduled_at or at(DAY)})


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_reschedule_sets_the_new_time(app: App) -> None:
    accepted = app.notify().json()
    new_time = at(DAY)
    answer = reschedule(app, accepted["id"], new_time)
    assert answer.status_code == 200
    body = answer.json()
    assert body["status"] == "created"
    assert moment(body["scheduled_at"]) == moment(new_time)
    assert moment(body["delivery"][0]["next_attempt_at"]) == moment(new_time)
    read = app.get(f"/notifications/{accepted['id']}").json()
    assert read["scheduled_at"] == body["scheduled_at"]


def test_only_reschedule_to_now_queues_the_notification(app: App, broker: Any) -> None:
    accepted = app.notify(scheduled_at=at(DAY)).json()
    assert reschedule(app, accepted["id"], at(2 * DAY)).json()["status"] == "created"
    assert broker.keys("email.*") == []
    assert reschedule(app, accepted["id"], at(timedelta(0))).json()["status"] == "queued"
    assert broker.llen("email.high") == 1


def test_type_ttl_counts_from_the_new_time(app: App) -> None:
    accepted = app.notify(type="mfa_code", data={"code": "123456", "expires_in": 5}).json()
    before = moment(accepted["expires_at"]) - moment(accepted["created_at"])
    body = reschedule(app, accepted["id"]).json()
    assert moment(body["expires_at"]) - moment(body["scheduled_at"]) == before


def test_fixed_expiry_is_kept(app: App) -> None:
    accepted = app.notify(expires_at=at(2 * DAY)).json()
    assert reschedule(app, accepted["id"]).json()["expires_at"] == accepted["expires_at"]
    answer = reschedule(app, accepted["id"], at(2 * DAY))
    assert answer.status_code == 422
    assert pointers(answer) == {"/scheduled_at": "expires_before_sending"}


@each_case("status", [DeliveryStatus.SENT, DeliveryStatus.FAILED])
def test_attempted_notification_cannot_be_rescheduled(app: App, status: DeliveryStatus) -> None:
    document = factories.settled(status, client_id=app.id)
    answer = reschedule(app, document["_id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "invalid_state")


@each_case(
    "scheduled_at, code",
    [
        ("2026-12-01T09:00", "naive_datetime"),
        ("tomorrow", "invalid_datetime"),
        ("2026-02-30T09:00:00Z", "invalid_datetime"),
        (at(-timedelta(hours=1)), "in_the_past"),
        (at(366 * DAY), "too_far_ahead"),
        ("9" * 41, "out_of_range"),
    ],
)
def test_invalid_time_is_refused(app: App, scheduled_at: Any, code: str) -> None:
    accepted = app.notify().json()
    answer = reschedule(app, accepted["id"], scheduled_at)
    assert (answer.status_code, pointers(answer)) == (422, {"/scheduled_at": code})


def test_unknown_notification_is_not_rescheduled(app: App) -> None:
    for unknown in (ObjectId(), "x", "null"):
        assert reschedule(app, unknown).status_code == 404
