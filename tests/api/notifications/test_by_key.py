"""``PUT /notifications/by-key/{key}``."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from bson import ObjectId

from callbacks.events import EventType
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications import callback_events
from notifications.actions import actions
from notifications.store import leases, removal
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers, request
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

S = DeliveryStatus
KEY = "appointment-7"
HEADERS = {"Idempotency-Key": KEY}
PATH = f"/notifications/by-key/{KEY}"
HOUR = timedelta(hours=1)
KIND = {"name": "Code", "category": "transactional", "channels": ["email"]}


def later(hours: int = 1) -> str:
    return (utc_now() + hours * HOUR).isoformat()


def body(subject: str = "At 15:00", **fields: Any) -> dict[str, Any]:
    content = {"subject": subject, "body": f"{subject}, as agreed."}
    return request(type="transactional", content=content, **{"scheduled_at": later(), **fields})


def post(app: App, **fields: Any) -> Any:
    return app.post("/notifications", body(**fields), headers=HEADERS)


def stored(answer: Any) -> Any:
    return factories.read(ObjectId(answer.json()["id"]))


class TestReplacement:
    def test_it_keeps_the_id_and_nothing_else(self, app: App) -> None:
        first = post(app, external_id="old", source="shop")
        answer = app.put(
            PATH,
            body("At 16:00", scheduled_at=later(5), user_id="ada", channels=["email", "in_app"]),
        )
        assert answer.status_code == 202
        assert answer.headers["Location"] == f"/api/v1/notifications/{first.json()['id']}"
        view = answer.json()
        assert (view["id"], view["created_at"]) == (first.json()["id"], first.json()["created_at"])
        assert view["content"]["subject"] == "At 16:00"
        assert (view["external_id"], view["source"]) == (None, None)
        assert [delivery["channel"] for delivery in view["delivery"]] == ["email", "in_app"]
        assert view["replaced_at"] is not None
        assert first.json()["replaced_at"] is None
        assert app.get(f"/notifications/{view['id']}").json()["content"]["subject"] == "At 16:00"
        assert collection("notifications").count_documents({}) == 1

    def test_type_and_recipient_may_change(self, app: App) -> None:
        post(app)
        other = {"email": "bob@example.com"}
        view = app.put(PATH, request(recipient=other, scheduled_at=later())).json()
        assert (view["type"], view["recipient"]["email"]) == ("payment_confirmed", other["email"])

    def test_without_a_time_it_is_sent_now(self, app: App) -> None:
        post(app)
        answer = app.put(PATH, body(scheduled_at=None))
        assert answer.json()["status"] == "queued"
        assert stored(answer)["due_at"] <= utc_now()

    def test_unknown_key_creates(self, app: App) -> None:
        answer = app.put(PATH, body())
        assert (answer.status_code, answer.json()["replaced_at"]) == (202, None)
        assert answer.headers["Location"] == f"/api/v1/notifications/{answer.json()['id']}"
        again = app.post("/notifications", body(), headers=HEADERS)
        assert again.status_code == 422  # The time differs.
        assert again.json()["code"] == "idempotency_key_reused"

    def test_key_is_known_when_its_record_has_expired(self, app: App) -> None:
        first = post(app)
        collection("idempotency_keys").delete_many({})
        assert app.put(PATH, body("At 16:00")).json()["id"] == first.json()["id"]

    def test_newest_notification_of_a_key_is_replaced(self, app: App) -> None:
        post(app)
        collection("idempotency_keys").delete_many({})
        second = post(app, subject="Another")
        assert app.put(PATH, body("At 16:00")).json()["id"] == second.json()["id"]

    def test_another_client_has_keys_of_its_own(self, app: App, other_app: App) -> None:
        first = post(app)
        other = other_app.put(PATH, body())
        assert other.status_code == 202
        assert other.json()["id"] != first.json()["id"]
        assert stored(first)["content"]["subject"] == "At 15:00"

    def test_values_that_look_like_expressions_are_stored_as_they_are(self, app: App) -> None:
        post(app)
        payload = {"set": "$_id", "b": {"literal": "$$REMOVE"}}
        answer = app.put(PATH, body("$created_at", data={"x": "$$ROOT", "y": {"z": "$z"}}))
        assert answer.status_code == 202, answer.content
        assert stored(answer)["content"]["subject"] == "$created_at"
        assert stored(answer)["data"] == {"x": "$$ROOT", "y": {"z": "$z"}}
        content = {"subject": "A", "body": "B", "payload": payload}
        assert stored(app.put(PATH, body() | {"content": content}))["content"]["payload"] == payload

    def test_marks_and_encrypted_values_of_the_old_message_are_gone(self, app: App) -> None:
        code = request(type="code", data={"code": "481592"}, scheduled_at=later())
        example = {"example_data": {"code": "123456"}}
        sensitive = {**KIND, **example, "sensitive_variables": ["code"]}
        assert app.put("/types/code", sensitive).status_code == 201
        parts = {"default": {"subject": "Code", "body": "Use {{ code }}."}}
        app.post("/types/code/templates", {"parts": parts})
        app.post("/types/code/templates/versions/1/publish")
        first = app.post("/notifications", code, headers=HEADERS)
        assert "encrypted_content" in stored(first), first.content
        app.post(f"/notifications/{first.json()['id']}/read")
        document = stored(app.put(PATH, body()))
        assert "encrypted_content" not in document
        assert document["is_read"] is False
        document = stored(app.put(PATH, code))
        assert "encrypted_content" in document
        assert "481592" not in str(document)

    def test_it_is_in_the_audit_log(self, app: App) -> None:
        first = post(app)
        app.put(PATH, changed := body("At 16:00"))
        app.put(PATH, changed)
        entries = list(collection("django_admin_log").find({"object_id": first.json()["id"]}))
        assert [entry["change_message"] for entry in entries] == ["By client app: Replaced."]

    def test_entity_of_another_notification_is_refused(self, app: App) -> None:
        taken = app.notify(user_id="ada", entity_id="order-1").json()
        post(app)
        answer = app.put(PATH, request(user_id="ada", entity_id="order-1"))
        assert (answer.status_code, answer.json()["code"]) == (409, "already_notified")
        assert answer.json()["notification_id"] == taken["id"]

    def test_own_entity_may_stay(self, app: App) -> None:
        fields = {"user_id": "ada", "entity_id": "appointment-7"}
        post(app, **fields)
        assert app.put(PATH, body("At 16:00", **fields)).status_code == 202

    def test_invalid_request_changes_nothing(self, app: App) -> None:
        first = post(app)
        before = stored(first)
        answer = app.put(PATH, body(scheduled_at="2020-01-01T00:00:00Z", channels=["fax"]))
        assert (answer.status_code, set(pointers(answer))) == (
            422,
            {"/channels/0", "/scheduled_at"},
        )
        assert stored(first) == before

    def test_key_is_found_by_an_index(self, app: App) -> None:
        post(app)
        with plans("notifications") as found:
            app.put(PATH, body("At 16:00"))
        assert [(plan.summary.split()[0], plan.examined, plan.sorts) for plan in found] == [
            ("IXSCAN", 1, False),
            ("IXSCAN", 1, False),
        ]


class TestKeys:
    @pytest.mark.parametrize("key", ["cancel", "read", "a?b#c", "50%", "a+b&c", "~!'()*;:@,"])
    def test_any_visible_character_is_escaped(self, app: App, key: str) -> None:
        path = f"/notifications/by-key/{quote(key, safe='')}"
        first = app.post("/notifications", body(), headers={"Idempotency-Key": key})
        assert app.put(path, body("At 16:00")).json()["id"] == first.json()["id"]

    @each_case(
        "key, status",
        [
            ("%20", 422),
            ("%C3%A9", 422),
            ("a%0Ab", 422),
            ("a%2Fb", 404),
            (".", 422),
            ("%2E%2E", 422),
            ("k" * 256, 404),
            ("", 404),
        ],
    )
    def test_others_are_refused(self, app: App, key: str, status: int) -> None:
        assert app.put(f"/notifications/by-key/{key}", body()).status_code == status
        assert collection("notifications").count_documents({}) == 0


class TestRepeats:
    def test_repeated_request_has_one_effect(self, app: App) -> None:
        post(app)
        changed = body("At 16:00")
        first = app.put(PATH, changed)
        before = stored(first)
        again = app.put(PATH, changed)
        assert (again.status_code, again.headers["Idempotent-Replayed"]) == (202, "true")
        assert again.json() == {**first.json(), "warnings": again.json()["warnings"]}
        assert stored(first) == before

    def test_request_of_the_creation_has_no_second_effect(self, app: App) -> None:
        created = body()
        first = app.post("/notifications", created, headers=HEADERS)
        assert app.put(PATH, created).headers["Idempotent-Replayed"] == "true"
        assert "replaced" not in stored(first)

    def test_earlier_request_is_a_change(self, app: App) -> None:
        first, second = body(), body("At 16:00")
        for one in (first, second, first):
            answer = app.put(PATH, one)
        assert "Idempotent-Replayed" not in answer.headers
        assert stored(answer)["content"]["subject"] == "At 15:00"
        assert stored(answer)["replaced"]["count"] == 2

    def test_request_stays_accepted_once_it_is_sent(self, app: App) -> None:
        post(app)
        changed = body("At 16:00", scheduled_at=None)
        answer = app.put(PATH, changed)
        start(answer.json()["id"])
        again = app.put(PATH, changed)
        assert (again.status_code, again.json()["status"]) == (202, "processing")

    def test_request_isn_t_repeated_after_a_cancellation(self, app: App) -> None:
        changed = body("At 16:00")
        answer = app.put(PATH, changed)
        app.post(f"/notifications/{answer.json()['id']}/cancel")
        assert app.put(PATH, changed).json()["code"] == "already_cancelled"

    def test_key_that_was_reserved_by_a_lost_request_is_free(self, app: App) -> None:
        first = post(app)
        collection("notifications").delete_many({})
        answer = app.put(PATH, body("At 16:00"))
        assert (answer.status_code, answer.json()["id"]) == (202, first.json()["id"])
        assert answer.json()["content"]["subject"] == "At 16:00"


def start(notification_id: str) -> Any:
    claimed = factories.claim(ObjectId(notification_id), at=utc_now())
    return factories.start(claimed, at=utc_now())


class TestRefusals:
    def refused(self, app: App, code: str, **fields: Any) -> None:
        answer = app.put(PATH, body("At 16:00", **fields))
        assert (answer.status_code, answer.json()["code"]) == (409, code)
        assert answer.json()["notification_id"]

    def test_started_delivery(self, app: App) -> None:
        first = post(app, scheduled_at=None)
        started = start(first.json()["id"])
        self.refused(app, "already_sending")
        leases.settle([factories.settlement(started, S.PENDING, at=utc_now())], now=utc_now())
        self.refused(app, "already_sending")

    def test_unknown_outcome(self, app: App) -> None:
        started = start(post(app, scheduled_at=None).json()["id"])
        leases.settle([factories.settlement(started, S.UNKNOWN, at=utc_now())], now=utc_now())
        self.refused(app, "already_sending")

    def test_one_channel_of_several_was_sent(self, app: App) -> None:
        post(app, scheduled_at=None, user_id="ada", channels=["email", "in_app"])
        self.refused(app, "already_sending")

    def test_first_step_of_a_plan_was_sent(self, app: App) -> None:
        plan = {"steps": [{"channels": ["email"]}, {"channels": ["whatsapp"], "after": 3600}]}
        recipient = {"email": "ada@example.com", "phone": "+351910000001"}
        first = post(app, scheduled_at=None, plan=plan, recipient=recipient)
        assert (
            app.put(PATH, body(plan=plan, recipient=recipient, scheduled_at=None)).status_code
            == 202
        )
        started = start(first.json()["id"])
        leases.settle([factories.settlement(started, S.SENT, at=utc_now())], now=utc_now())
        self.refused(app, "already_sending")

    def test_sent(self, app: App) -> None:
        started = start(post(app, scheduled_at=None).json()["id"])
        leases.settle([factories.settlement(started, S.SENT, at=utc_now())], now=utc_now())
        self.refused(app, "already_sent")

    def test_cancelled(self, app: App) -> None:
        first = post(app).json()
        app.post(f"/notifications/{first['id']}/cancel")
        self.refused(app, "already_cancelled")

    def test_deleted(self, app: App) -> None:
        app.delete(f"/notifications/{post(app).json()['id']}")
        self.refused(app, "already_cancelled")

    def test_erased(self, app: App) -> None:
        first = post(app, user_id="ada")
        removal.erase_content([ObjectId(first.json()["id"])], now=utc_now())
        self.refused(app, "invalid_state")
        assert "ada@example.com" not in str(stored(first))

    def test_suppressed(self, app: App) -> None:
        post(app, user_id="nobody", recipient={}, channels=["in_app"])
        collection("notifications").update_one({}, {"$set": {"delivery.0.status": "suppressed"}})
        self.refused(app, "invalid_state")

    def test_bulk_create_has_one_key_for_several(self, app: App) -> None:
        items = [body("One"), body("Two")]
        app.post("/notifications/bulk", {"notifications": items}, headers=HEADERS)
        for record_expires in (False, True):
            if record_expires:
                collection("idempotency_keys").delete_many({})
            answer = app.put(PATH, body())
            assert (answer.status_code, answer.json()["code"]) == (409, "invalid_state")
        assert collection("notifications").count_documents({}) == 2


class TestDigests:
    def test_member_that_waits_leaves_its_digest(self, app: App) -> None:
        first = post(app)
        digest_id = ObjectId()
        collection("notifications").update_one(
            {},
            {
                "$set": {"delivery.0.digest_id": digest_id},
                "$push": {"search_keys": f"g:{digest_id}"},
            },
        )
        document = stored(app.put(PATH, body("At 16:00")))
        assert document["_id"] == ObjectId(first.json()["id"])
        assert "digest_id" not in document["delivery"][0]
        assert f"g:{digest_id}" not in document["search_keys"]

    def test_member_that_is_being_sent_is_refused(self, app: App) -> None:
        post(app)
        chosen = {"delivery.0.digest_id": ObjectId(), "delivery.0.digest_epoch": 1}
        collection("notifications").update_one({}, {"$set": chosen})
        assert app.put(PATH, body("At 16:00")).json()["code"] == "already_sending"


class TestCallbacks:
    def test_events_are_of_what_was_sent(self, app: App) -> None:
        app.put(
            "/callbacks", {"url": "https://hooks.example.com/", "events": ["delivery.cancelled"]}
        )
        first = post(app, external_id="old", channels=["email"])
        revision = stored(first)["callback_revision"]
        answer = app.put(PATH, body("At 16:00", external_id="new"))
        assert stored(answer)["callback_revision"] > revision
        actions.cancel(
            notification_id=ObjectId(answer.json()["id"]),
            channels=None,
            reason="No.",
            now=utc_now(),
        )
        (event, _) = callback_events.events_of(stored(answer))
        assert (event.type, event.data["external_id"]) == (EventType.DELIVERY_CANCELLED, "new")

    def test_same_event_of_each_version_has_its_own_id(self, app: App) -> None:
        fields: dict[str, Any] = {"user_id": "ada", "channels": ["email", "push"]}
        app.put("/recipients/ada", {})
        muted = {"transactional": {"muted_channels": ["push"]}}
        assert app.put("/recipients/ada/preferences", {"preferences": muted}).status_code == 200
        post(app, **fields)
        ids = []
        for subject in ("One", "Two"):
            answer = app.put(PATH, body(subject, **fields))
            assert [delivery["status"] for delivery in answer.json()["delivery"]] == [
                "pending",
                "suppressed",
            ]
            ids += [event.id for event in callback_events.events_of(stored(answer))]
        assert len(set(ids)) == 2
