"""The digest routes, and digests in notifications, types, and preferences."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry

from delivery import digests, pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app, pages, pointers
from tests.support.factories.digests import opened
from tests.support.tables import each_case

DIGEST = {"window": {"minutes": 30}}
COMMENT = {"name": "Comment", "category": "transactional", "channels": ["email", "in_app"]}
SUBJECT = "{% if digest %}{{ digest.count }} comments{% else %}A comment{% endif %}"
PARTS = {"default": {"subject": SUBJECT, "body": "See them."}}


@pytest.fixture(autouse=True)
def no_types_left() -> Iterator[None]:
    yield
    collection("notification_types").delete_one({"_id": "comment"})
    types.invalidate_types()


def define(app: App, digest: Any = DIGEST, **fields: Any) -> Answer:
    return app.put("/types/comment", {**COMMENT, "digest": digest, **fields})


def comments(app: App, count: int = 2) -> list[str]:
    """Store messages, and have them join a digest."""
    assert define(app).status_code == 201
    assert app.post("/types/comment/templates", {"parts": PARTS}).status_code == 201
    assert app.post("/types/comment/templates/versions/1/publish").status_code == 200
    sent = [
        app.notify(type="comment", user_id="ada", data={}, channels=["email"]) for _ in range(count)
    ]
    ids = [answer.json()["id"] for answer in sent]
    now = utc_now()
    pipeline.dispatch(
        SendingRuntime(),
        [ObjectId(notification_id) for notification_id in ids],
        channel=Channel.EMAIL,
        clock=lambda: now,
    )
    return ids


def close_all() -> None:
    assert digests.close_due(clock=lambda: utc_now() + timedelta(minutes=1)) == 1


def test_digest_is_listed_and_shown_with_its_waiting_messages(app: App) -> None:
    ids = comments(app)
    [listed] = app.get("/digests", status="open", user_id="ada", type="comment").json()["results"]
    shown = app.get(f"/digests/{listed['id']}").json()
    assert shown == listed | {"waiting": 2}
    assert (shown["status"], shown["channel"], shown["carrier_id"]) == ("open", "email", None)
    for filters in ({"status": "closed"}, {"user_id": "bob"}, {"type": "marketing"}):
        assert app.get("/digests", **filters).json()["results"] == []
    [delivery] = app.get(f"/notifications/{ids[0]}").json()["delivery"]
    assert (delivery["digest_id"], delivery["wait_reason"]) == (listed["id"], "digest")
    assert delivery["next_attempt_at"] == listed["closes_at"]


def test_invalid_filters_are_refused(app: App) -> None:
    assert pointers(app.get("/digests", status="merged")) == {"/status": "unknown_status"}
    assert app.get("/digests", channel="email").status_code == 400
    assert app.get("/digests/nothing").status_code == 404


def test_list_is_paged_newest_first(app: App) -> None:
    ids = [str(opened(client_id=app.id)["_id"]) for _ in range(3)]
    opened(client_id=new_app("other").id)
    found = [digest["id"] for page in pages(app.get, "/digests", limit=2) for digest in page]
    assert found == ids[::-1]


def test_closed_digest_has_a_carrier_whose_status_its_messages_show(app: App) -> None:
    ids = comments(app)
    [listed] = app.get("/digests").json()["results"]
    closed = app.post(f"/digests/{listed['id']}/close")
    assert (closed.status_code, closed.json()["status"]) == (202, "closing")
    assert app.post(f"/digests/{listed['id']}/close").json()["code"] == "invalid_state"
    assert app.post(f"/digests/{listed['id']}/cancel").status_code == 409
    close_all()
    shown = app.get(f"/digests/{listed['id']}").json()
    assert (shown["status"], shown["outcome"], shown["count"]) == ("closed", "sent", 2)
    carrier = app.get(f"/notifications/{shown['carrier_id']}").json()
    assert (carrier["digest_id"], carrier["content"]["subject"]) == (listed["id"], "2 comments")
    found = app.get(f"/notifications/{ids[0]}").json()
    assert (found["status"], found["digest_id"]) == ("merged", None)
    [merged] = found["delivery"]
    assert merged["carried_by"] == carrier["id"]
    assert merged["carrier_status"] == carrier["status"]
    in_list = {result["id"]: result for result in app.get("/notifications").json()["results"]}
    assert in_list[ids[0]]["delivery"][0]["carrier_status"] is None
    assert audited(listed["id"]) == ["By client app: Closed."]


def test_cancelled_digest_cancels_its_messages(app: App) -> None:
    ids = comments(app)
    [listed] = app.get("/digests").json()["results"]
    assert app.post(f"/digests/{listed['id']}/cancel").json()["is_cancelled"] is True
    close_all()
    assert [
        app.get(f"/notifications/{notification_id}").json()["status"] for notification_id in ids
    ] == ["cancelled"] * 2
    assert audited(listed["id"]) == ["By client app: Cancelled."]


def audited(digest_id: str) -> list[str]:
    found = LogEntry.objects.filter(object_id=digest_id).order_by("id")
    return [entry.get_change_message() for entry in found]


def test_digest_of_a_type_is_stored_with_its_defaults(app: App) -> None:
    assert define(app).json()["digest"] == {
        "channels": ["email"],
        "key": None,
        "window": {
            "minutes": 30,
            "every": None,
            "at": "09:00",
            "days": [],
            "zone": "recipient",
        },
        "leading": False,
        "sliding": False,
        "max_items": 20,
        "min_items": 2,
        "only_over_limit": False,
    }
    assert define(app, None).json()["digest"] is None


@each_case(
    "digest, fields, expected",
    [
        (DIGEST, {"priority": "critical"}, {"/digest": "critical_type"}),
        (DIGEST, {"sensitive_variables": ["code"]}, {"/digest": "sensitive_type"}),
        ({"channels": ["in_app"]}, {}, {"/digest/channels": "not_digested"}),
        ({"channels": ["push"]}, {}, {"/digest/channels": "not_a_channel"}),
        ({"channels": ["pigeon"]}, {}, {"/digest/channels/0": "unknown_channel"}),
        ({"window": {}}, {}, {"/digest/window": "conflict"}),
        ({"window": {"minutes": 1, "every": "day"}}, {}, {"/digest/window": "conflict"}),
        ({"window": {"minutes": 0}}, {}, {"/digest/window/minutes": "out_of_range"}),
        ({"window": {"every": "year"}}, {}, {"/digest/window/every": "unknown_value"}),
        ({"window": {"every": "day", "at": "25:00"}}, {}, {"/digest/window/at": "invalid_time"}),
        (
            {"window": {"every": "week", "days": ["xyz"]}},
            {},
            {"/digest/window/days/0": "unknown_value"},
        ),
        (
            {"window": {"every": "day", "zone": "Mars/Olympus"}},
            {},
            {"/digest/window/zone": "unknown_timezone"},
        ),
        (
            {"window": {"every": "day"}, "sliding": True},
            {},
            {"/digest/sliding": "conflict"},
        ),
        ({"only_over_limit": True, "leading": True}, {}, {"/digest/leading": "conflict"}),
        ({"min_items": 1}, {}, {"/digest/min_items": "out_of_range"}),
        ({"max_items": 101}, {}, {"/digest/max_items": "out_of_range"}),
        ({"windows": 1}, {}, {"/digest/windows": "unknown_field"}),
    ],
)
def test_invalid_digest_of_a_type_is_refused(
    app: App, digest: dict[str, Any], fields: dict[str, Any], expected: dict[str, str]
) -> None:
    answer = define(app, {**DIGEST, **digest}, **fields)
    assert answer.status_code == 422
    assert pointers(answer) == expected
