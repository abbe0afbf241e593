"""The broadcast routes: creation, idempotency, reading, actions, and validation."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from bson import ObjectId

from access.models import Scope
from domain.time import utc_now
from notifications.broadcasts import preview, runner
from notifications.catalog import limits
from notifications.store import limit_uses
from notifications.store.limit_uses import UseRequest
from notifyproject.db.collections import collection
from recipients import topics
from tests.support.clients.api import Answer, App, new_app, pages, pointers
from tests.support.factories.broadcasts import recipients, run_to_completion
from tests.support.tables import each_case

PATH = "/broadcasts"
CONTENT = {"subject": "Spring", "body": "It is spring."}


def broadcast(**fields: Any) -> dict[str, Any]:
    """Return a valid request with these fields. The value ... leaves a field out."""
    body = {"type": "marketing", "audience": {"all": True}, "content": CONTENT, **fields}
    return {name: value for name, value in body.items() if value is not ...}


def create(app: App, *, key: str | None = None, **fields: Any) -> Answer:
    headers = {"Idempotency-Key": key} if key else {}
    return app.post(PATH, broadcast(**fields), headers=headers)


def run_all(answer: Answer) -> None:
    run_to_completion(ObjectId(answer.json()["id"]), at=utc_now())


def read(app: App, answer: Answer) -> dict[str, Any]:
    found = app.get(f"{PATH}/{answer.json()['id']}")
    assert found.status_code == 200
    body: dict[str, Any] = found.json()
    return body


def act(app: App, answer: Answer, what: str) -> Answer:
    return app.post(f"{PATH}/{answer.json()['id']}/{what}")


class TestCreate:
    def test_broadcast_is_accepted_with_its_location(self, app: App) -> None:
        recipients(3)
        answer = create(app)
        assert answer.status_code == 202
        body = answer.json()
        assert answer.headers["Location"] == f"/api/v1/broadcasts/{body['id']}"
        assert (body["status"], body["accepted"], body["audience_size"]) == ("running", 0, 3)
        assert body["audience"] == {"all": True}
        assert (body["priority"], body["type"]) == ("low", "marketing")
        assert body["content"]["body"] == "It is spring."
        assert collection("notifications").count_documents({}) == 0, "a worker reads the audience"

    def test_source_is_passed_on_to_the_notifications(self, app: App) -> None:
        recipients(2)
        answer = create(app, source="newsletter")
        assert answer.json()["source"] == "newsletter"
        run_all(answer)
        assert len(app.get("/notifications", source="newsletter").json()["results"]) == 2

    def test_plan_is_passed_on_to_the_notifications(self, app: App) -> None:
        recipients(1)
        steps = [{"channels": ["in_app"]}, {"after": 900, "channels": ["email"]}]
        answer = create(app, plan={"until": "read", "steps": steps})
        assert answer.json()["plan"]["steps"][1] == steps[1] | {"skip_if_late": None}
        run_all(answer)
        (sent,) = app.get("/notifications").json()["results"]
        assert [(d["channel"], d["step"]) for d in sent["delivery"]] == [
            ("in_app", 1),
            ("email", 2),
        ]
        refused = create(app, channels=["email"], plan={"steps": steps})
        assert pointers(refused)["/plan"] == "conflict"

    def test_release_is_announced_by_each_recipients_wish(self, app: App) -> None:
        recipients(1)
        event_at = (utc_now() + timedelta(days=10)).isoformat()
        answer = create(
            app,
            type="video_release_schedule",
            content=...,
            data={"video_title": "Sunrise", "release_date": event_at},
            event_at=event_at,
            entity_id="video-7",
        )
        assert answer.status_code == 202
        shown = read(app, answer)
        assert shown["entity_id"] == "video-7"
        assert datetime.fromisoformat(shown["event_at"]) == datetime.fromisoformat(event_at)
        assert (shown["status"], shown["scheduled_at"]) == ("running", None)
        run_all(answer)
        (notification,) = app.get("/notifications", entity_id="video-7").json()["results"]
        sent_at = datetime.fromisoformat(event_at) - timedelta(days=1)
        assert datetime.fromisoformat(notification["scheduled_at"]) == sent_at.replace(
            microsecond=sent_at.microsecond // 1000 * 1000
        )

    @each_case(
        "fields, place",
        [
            ({"type": "marketing"}, {"/event_at": "not_a_reminder"}),
            ({"event_at": "2020-01-01T00:00:00Z"}, {"/event_at": "in_the_past"}),
            ({"event_at": "tomorrow"}, {"/event_at": "invalid_datetime"}),
            ({"entity_id": "a\nb"}, {"/entity_id": "control_characters"}),
            ({"entity_id": "x" * 129}, {"/entity_id": "out_of_range"}),
        ],
    )
    def test_event_and_entity_are_checked_as_a_notifications(
        self, app: App, fields: dict[str, Any], place: dict[str, str]
    ) -> None:
        event_at = (utc_now() + timedelta(days=10)).isoformat()
        reminder = {"type": "contest_reminder", "content": CONTENT, "event_at": event_at}
        assert pointers(create(app, **(reminder | fields))) == place

    def test_event_and_scheduled_time_exclude_each_other(self, app: App) -> None:
        at = (utc_now() + timedelta(days=10)).isoformat()
        answer = create(app, type="contest_reminder", event_at=at, scheduled_at=at)
        assert pointers(answer) == {"/event_at": "conflict"}

    def test_all_channels_are_stored_in_one_form(self, app: App) -> None:
        recipients(1)
        for channels in ("all", ["all"]):
            answer = create(app, channels=channels)
            assert answer.json()["channels"] == ["all"]
            run_all(answer)
            assert read(app, answer)["accepted"] == 1

    def test_repeated_user_ids_count_once(self, app: App) -> None:
        answer = create(app, audience={"user_ids": ["ada", "grace", "ada"]})
        assert answer.json()["audience"] == {"user_ids": True}
        assert answer.json()["audience_size"] == 2
        assert "grace" not in answer.content.decode()

    def test_ten_thousand_user_ids_are_accepted(self, app: App) -> None:
        named = [f"{'a-long-user-id-':x<120}{n:05d}" for n in range(10_000)]
        assert create(app, audience={"user_ids": named}).json()["audience_size"] == 10_000

    def test_broadcast_of_a_test_key_creates_tests(self, app: App) -> None:
        tester = new_app("tester", is_test=True)
        recipients(1)
        answer = create(tester)
        assert answer.json()["is_test"] is True
        run_all(answer)
        found = collection("notifications").find_one({})
        assert found["is_test"] is True


class TestIdempotency:
    def test_same_key_and_body_are_replayed(self, app: App) -> None:
        first, again = create(app, key="k"), create(app, key="k")
        assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
        assert again.headers["Idempotent-Replayed"] == "true"
        assert "Idempotent-Replayed" not in first.headers
        assert collection("broadcasts").count_documents({}) == 1

    def test_replay_shows_the_current_progress(self, app: App) -> None:
        recipients(2)
        run_all(create(app, key="k"))
        again = create(app, key="k").json()
        assert (again["status"], again["accepted"]) == ("completed", 2)

    def test_other_body_with_the_same_key_is_refused(self, app: App) -> None:
        create(app, key="k")
        answer = create(app, key="k", priority="high")
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")

    def test_key_is_for_one_kind_of_request(self, app: App) -> None:
        create(app, key="k")
        headers = {"Idempotency-Key": "k"}
        other = {"type": "marketing", "recipient": {"email": "a@example.com"}, "content": CONTENT}
        assert app.post("/notifications", other, headers=headers).status_code == 422
        assert (
            app.post("/notifications", other, headers={"Idempotency-Key": "n"}).status_code == 202
        )
        assert create(app, key="n").json()["code"] == "idempotency_key_reused"

    def test_key_is_per_client(self, app: App, other_app: App) -> None:
        first, other = create(app, key="k"), create(other_app, key="k")
        assert first.json()["id"] != other.json()["id"]

    def test_crash_after_storing_the_key_is_recovered(self, app: App) -> None:
        first = create(app, key="k")
        collection("broadcasts").delete_one({"_id": ObjectId(first.json()["id"])})
        again = create(app, key="k")
        assert again.json()["id"] == first.json()["id"]
        assert collection("broadcasts").count_documents({}) == 1

    def test_refused_request_does_not_use_its_key(self, app: App) -> None:
        assert create(app, key="k", type="nope").status_code == 422
        assert create(app, key="k").status_code == 202

    def test_calls_without_key_create_two_broadcasts(self, app: App) -> None:
        assert create(app).json()["id"] != create(app).json()["id"]


class TestRead:
    def test_completed_broadcast_shows_its_outcomes(self, app: App) -> None:
        recipients(3)
        answer = create(app, audience={"user_ids": ["user-00000", "user-00001", "nobody"]})
        run_all(answer)
        body = read(app, answer)
        assert (body["status"], body["accepted"]) == ("completed", 2)
        assert body["notifications"] == {"queued": 2}
        assert body["skipped"] == [{"code": "no_address", "count": 1, "examples": ["nobody"]}]
        assert body["rejected"] == []
        assert body["finished_at"]
        listed = app.get("/notifications").json()["results"]
        assert {broadcast["broadcast_id"] for broadcast in listed} == {body["id"]}

    def test_list_is_newest_first_and_paginated(self, app: App) -> None:
        made = [create(app).json()["id"] for _ in range(3)]
        found = [[broadcast["id"] for broadcast in page] for page in pages(app.get, PATH, limit=2)]
        assert found == [made[:0:-1], made[:1]]


class TestActions:
    def test_broadcast_is_paused_and_resumed(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "PAGE_SIZE", 2)
        recipients(3)
        answer = create(app)
        runner.run_page(ObjectId(answer.json()["id"]))
        paused = act(app, answer, "pause")
        assert (paused.status_code, paused.json()["status"]) == (200, "paused")
        run_all(answer)
        assert read(app, answer)["accepted"] == 2
        assert act(app, answer, "resume").json()["status"] == "running"
        run_all(answer)
        assert (read(app, answer)["status"], read(app, answer)["accepted"]) == ("completed", 3)

    def test_cancelled_broadcast_withdraws_pending_notifications(self, app: App) -> None:
        recipients(2)
        answer = create(app)
        run_all(answer)
        cancelled = act(app, answer, "cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (202, "cancelling")
        run_all(answer)
        body = read(app, answer)
        assert (body["status"], body["withdrawn"]) == ("cancelled", 2)
        assert body["notifications"] == {"cancelled": 2}

    def test_completed_broadcast_refuses_actions(self, app: App) -> None:
        answer = create(app)
        run_all(answer)
        for what in ("pause", "resume", "cancel"):
            refused = act(app, answer, what)
            assert (refused.status_code, refused.json()["code"]) == (409, "invalid_state")


@each_case(
    "audience, problems",
    [
        ({}, {"/audience": "conflict"}),
        ({"topic": "news", "all": True}, {"/audience": "conflict"}),
        ({"all": False}, {"/audience/all": "out_of_range"}),
        ({"topic": "No Such"}, {"/audience/topic": "invalid_topic"}),
        ({"topic": {"$gt": ""}}, {"/audience/topic": "wrong_type"}),
        ({"topic": ""}, {"/audience/topic": "out_of_range"}),
        ({"user_ids": []}, {"/audience/user_ids": "out_of_range"}),
        ({"user_ids": ["x" * 129]}, {"/audience/user_ids/0": "out_of_range"}),
        ({"user_ids": ["a\x00"]}, {"/audience/user_ids/0": "nul_character"}),
        ({"user_ids": [f"{n}" for n in range(10_001)]}, {"/audience/user_ids": "out_of_range"}),
        ({"segment": "x"}, {"/audience/segment": "unknown_field"}),
    ],
)
def test_audience_has_exactly_one_kind(app: App, audience: Any, problems: dict[str, str]) -> None:
    answer = create(app, audience=audience)
    assert (answer.status_code, pointers(answer)) == (422, problems)
    assert collection("broadcasts").count_documents({}) == 0


@each_case(
    "fields, problems",
    [
        ({"type": "nope"}, {"/type": "unknown_type"}),
        ({"type": "mfa_code", "data": {"code": "1", "expires_in": 5}}, {"/type": "critical_type"}),
        ({"priority": "critical"}, {"/priority": "priority_too_high"}),
        ({"type": "alert", "priority": "critical"}, {"/priority": "critical_broadcast"}),
        ({"channels": ["fax"]}, {"/channels/0": "unknown_channel"}),
        ({"ttl": 0}, {"/ttl": "invalid_ttl"}),
        ({"scheduled_at": "2020-01-01T00:00:00Z"}, {"/scheduled_at": "in_the_past"}),
        ({"data": {"$where": 1}}, {"/data/$where": "forbidden_key"}),
        (
            {"content": {**CONTENT, "subject": "a\r\nBcc: b"}},
            {"/content/subject": "control_characters"},
        ),
        (
            {"channels": ["push"], "content": {**CONTENT, "payload": {"x": "y" * 5_000}}},
            {"/content/payload": "too_long"},
        ),
        ({"content": {**CONTENT, "sender": "x"}}, {"/content/sender": "unknown_field"}),
        ({"user_id": "ada"}, {"/user_id": "unknown_field"}),
        ({"recipient": {"email": "a@example.com"}}, {"/recipient": "unknown_field"}),
    ],
)
def test_invalid_request_is_refused(
    app: App, fields: dict[str, Any], problems: dict[str, str]
) -> None:
    answer = create(app, **fields)
    assert (answer.status_code, pointers(answer)) == (422, problems)
    assert collection("broadcasts").count_documents({}) == 0


def test_template_with_missing_variable_is_refused(app: App) -> None:
    answer = create(app, type="order_shipped", content=..., data={})
    assert answer.status_code == 422
    assert set(pointers(answer).values()) == {"missing_variable"}


def test_type_with_sensitive_variables_is_refused(app: App) -> None:
    secret = {"$set": {"sensitive_variables": ["code"]}}
    collection("notification_types").update_one({"_id": "alert"}, secret)
    answer = create(app, type="alert", data={"code": "1"})
    assert pointers(answer) == {"/type": "secret_type"}


def test_template_of_a_type_with_sensitive_variables_is_refused(app: App) -> None:
    data = {"code": "123456", "expires_in": 5}
    answer = create(app, type="transactional", content={"template_id": "mfa_code"}, data=data)
    assert pointers(answer)["/type"] == "secret_type"
    assert collection("broadcasts").count_documents({}) == 0


def test_invalid_idempotency_key_is_refused(app: App) -> None:
    assert create(app, key="with blank").json()["code"] == "invalid_idempotency_key"


@each_case("broadcast_id", ["x", "a" * 24, "A" * 25, "%00", "$ne"])
def test_invalid_id_is_not_found_for_every_action(app: App, broadcast_id: str) -> None:
    answers = [app.get(f"/broadcasts/{broadcast_id}")]
    answers += [
        app.post(f"/broadcasts/{broadcast_id}/{what}") for what in ("pause", "resume", "cancel")
    ]
    assert [answer.status_code for answer in answers] == [404] * 4


class TestPreview:
    @pytest.fixture
    def weekly(self) -> Iterator[None]:
        fields = {"categories": ["marketing"], "max": 2, "period_seconds": 604_800}
        valid = limits.validate_limit("weekly", msgspec.convert(fields, limits.LimitRequest))
        limits.define_limit("weekly", valid, now=utc_now())
        yield
        collection("limits").delete_many({})
        limits.invalidate_limits()

    def use_up(self, *user_ids: str, count: int = 2) -> None:
        for user_id in user_ids:
            [rule] = limits.active_limits()
            requests = [
                UseRequest(
                    limits=[rule],
                    person=limits.person_of_user(user_id),
                    user_id=user_id,
                    delivery_id=f"{ObjectId()}.email",
                    due_at=utc_now(),
                )
                for _ in range(count)
            ]
            limit_uses.reserve_uses(requests, now=utc_now())

    @pytest.mark.usefixtures("weekly")
    def test_shows_who_would_be_notified_skipped_and_held(self, app: App) -> None:
        names = recipients(6)
        out = {"$set": {"preferences": {"marketing": {"muted": True}}}}
        collection("recipients").update_one({"_id": names[5]}, out)
        collection("recipients").update_one({"_id": names[4]}, {"$unset": {"email": ""}})
        self.use_up(names[0], names[1])
        self.use_up(names[2], count=1)
        answer = app.post(f"{PATH}/preview", broadcast(channels=["email"]))
        assert answer.status_code == 200
        assert answer.json() == {
            "audience_size": 6,
            "sampled": 6,
            "accepted": 4,
            "skipped": [
                {"code": "no_address", "count": 1, "examples": [names[4]]},
                {"code": "opted_out", "count": 1, "examples": [names[5]]},
            ],
            "rejected": [],
            "limits": [{"name": "weekly", "overflow": "later", "over_limit": 2, "estimate": 2}],
            "needs_approval": False,
        }
        assert collection("broadcasts").count_documents({}) == 0
        assert collection("notifications").count_documents({}) == 0

    @pytest.mark.usefixtures("weekly")
    def test_a_sample_stands_for_a_large_audience(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(preview, "SAMPLE", 40)
        names = recipients(200)
        for name in names:
            topics.join(topic="news", user_id=name, now=utc_now())
        self.use_up(*names)
        for chosen in ({"all": True}, {"topic": "news"}, {"user_ids": names}):
            shown = app.post(f"{PATH}/preview", broadcast(audience=chosen)).json()
            assert (shown["audience_size"], shown["sampled"], shown["accepted"]) == (200, 40, 40)
            (limit,) = shown["limits"]
            assert (limit["over_limit"], limit["estimate"]) == (40, 200)

    @pytest.mark.usefixtures("weekly")
    def test_empty_audience_and_test_key_reach_no_limit(self, app: App) -> None:
        shown = app.post(f"{PATH}/preview", broadcast()).json()
        assert (shown["sampled"], shown["accepted"], shown["limits"]) == (0, 0, [])
        self.use_up(*recipients(1))
        shown = new_app("test", is_test=True).post(f"{PATH}/preview", broadcast()).json()
        assert (shown["accepted"], shown["limits"]) == (1, [])

    def test_invalid_request_is_refused(self, app: App) -> None:
        answer = app.post(f"{PATH}/preview", broadcast(type="nope", audience={}))
        assert answer.status_code == 422
        assert pointers(answer) == {"/audience": "conflict", "/type": "unknown_type"}


def test_broadcast_without_a_key_is_refused(app: App) -> None:
    """A campaign went out again: https://github.com/knadh/listmonk/issues/1801."""
    answer = app.send(PATH, json.dumps(broadcast()).encode())
    assert (answer.status_code, answer.json()["code"]) == (400, "missing_idempotency_key")
    assert collection("broadcasts").count_documents({}) == 0


def test_topic_that_nobody_is_in_is_refused_with_the_nearest(app: App) -> None:
    app.put("/topics/newsletter/members/ada", {})
    near = broadcast(audience={"topic": "newsleter"})
    # A topic's name may say who its members are, so only who may list topics is told one.
    sender = new_app("sender", Scope.NOTIFICATIONS_WRITE)
    for client, meant in ((app, True), (sender, False)):
        for path in (PATH, f"{PATH}/preview"):
            answer = client.post(path, near)
            assert pointers(answer) == {"/audience/topic": "unknown_topic"}
            detail = answer.json()["errors"][0]["detail"]
            assert ("Did you mean `newsletter`?" in detail) is meant
            assert ("newsletter" in detail) is meant
    at = (utc_now() + timedelta(days=1)).isoformat()
    assert create(app, audience={"topic": "news"}, scheduled_at=at).status_code == 202
