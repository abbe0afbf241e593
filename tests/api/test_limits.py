"""The limit routes: definition, problems, and the use of a recipient."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry

from access.models import Scope
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog import limits
from notifications.store import acceptance
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, pointers, request
from tests.support.clients.bulk import post_bulk
from tests.support.factories import notifications as factories
from tests.support.fakes.provider import ScriptedProvider
from tests.support.tables import each_case

WEEKLY = {"categories": ["marketing"], "max": 3, "period_seconds": 604_800}
ONE = "/limits/weekly"


@pytest.fixture(autouse=True)
def no_limits_left() -> Iterator[None]:
    yield
    collection("limits").delete_many({})
    limits.invalidate_limits()


def test_limit_is_defined_replaced_and_removed(app: App) -> None:
    first = app.put(ONE, WEEKLY)
    assert first.status_code == 201
    shown = first.json()
    assert shown == {
        "name": "weekly",
        "types": [],
        "categories": ["marketing"],
        "channels": ["email", "push", "whatsapp", "sms"],
        "max": 3,
        "period_seconds": 604_800,
        "min_gap_seconds": 0,
        "overflow": "later",
        "created_at": shown["created_at"],
        "updated_at": shown["updated_at"],
    }
    assert app.get(ONE).json() == shown
    assert app.get("/limits").json() == {"results": [shown]}
    assert app.put(ONE, WEEKLY | {"max": 1}).status_code == 200
    assert app.get(ONE).json()["max"] == 1
    assert app.delete(ONE).status_code == 204
    assert app.get(ONE).status_code == app.delete(ONE).status_code == 404


@each_case(
    "fields, pointer",
    [
        ({"max": 0}, "/max"),
        ({"max": 101}, "/max"),
        ({"period_seconds": 59}, "/period_seconds"),
        ({"period_seconds": 2_678_401}, "/period_seconds"),
        ({"types": ["nothing_such"]}, "/types/0"),
        ({"categories": ["spam"]}, "/categories/0"),
        ({"channels": []}, "/channels"),
        ({"channels": ["pigeon"]}, "/channels/0"),
        ({"channels": ["in_app"]}, "/channels"),
        ({"overflow": "never"}, "/overflow"),
        ({"min_gap_seconds": 604_800}, "/min_gap_seconds"),
    ],
)
def test_invalid_limit_is_refused(app: App, fields: dict[str, Any], pointer: str) -> None:
    answer = app.put(ONE, WEEKLY | fields)
    assert answer.status_code == 422
    assert list(pointers(answer)) == [pointer]
    assert app.get("/limits").json()["results"] == []


def test_limit_with_an_invalid_name_is_refused(app: App) -> None:
    assert app.put("/limits/Weekly!", WEEKLY).status_code == 422


def test_number_of_limits_is_bounded(app: App) -> None:
    fields = limits.validate_limit("weekly", limits.LimitRequest(max=3, period_seconds=3_600))
    for number in range(limits.MAX_LIMITS):
        limits.define_limit(f"limit_{number}", fields, now=utc_now())
    assert app.put(ONE, WEEKLY).status_code == 422
    assert app.put("/limits/limit_0", WEEKLY).status_code == 200


@pytest.mark.usefixtures("broker")
def test_use_of_a_recipient_is_shown(app: App, fcm: ScriptedProvider) -> None:
    app.put("/limits/daily", {"max": 1, "period_seconds": 86_400})
    now = utc_now()
    ids = []
    for _ in range(2):
        notification = factories.new(user_id="ada")
        acceptance.accept([notification], now=now)
        ids.append(notification.id)
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: now)
    assert len(fcm.seen) == 1
    [shown] = app.get("/recipients/ada/limits").json()["results"]
    assert {name: shown[name] for name in ("name", "max", "used", "waiting")} == {
        "name": "daily",
        "max": 1,
        "used": 1,
        "waiting": 1,
    }
    # The one that waits takes the first free slot, so that the next one is a day later.
    expected = now + 2 * timedelta(days=1)
    assert datetime.fromisoformat(shown["next_at"]) == expected
    kind = {"type": "payment_confirmed", "user_id": "ada", "channels": ["email"]}
    preview = app.post("/notifications/preview", request(**kind))
    assert preview.json()["warnings"] == [
        {
            "channel": "email",
            "pointer": None,
            "code": "over_limit",
            "detail": "1 of 1 in 1 day (limit daily).",
        }
    ]
    [other] = app.get("/recipients/grace/limits").json()["results"]
    assert (other["used"], other["waiting"], other["used_at"]) == (0, 0, [])


def test_request_that_ignores_limits_needs_the_scope(app: App) -> None:
    other = new_app("Other", Scope.NOTIFICATIONS_WRITE)
    refused = other.notify(ignore_limits=True)
    assert refused.status_code == 403
    assert "limits:ignore" in refused.json()["detail"]
    assert other.notify().status_code == 202
    notification_id = app.notify(ignore_limits=True).json()["id"]
    assert factories.read(ObjectId(notification_id))["ignores_limits"] is True


def test_bulk_request_that_ignores_limits_is_refused_by_item() -> None:
    other = new_app("Other", Scope.NOTIFICATIONS_WRITE)
    item = {"type": "marketing", "recipient": {"email": "ada@example.com"}}
    item |= {"ignore_limits": True, "content": {"subject": "A", "body": "B"}}
    # The second answer is the stored one of the first.
    for _ in range(2):
        [result] = post_bulk(other, item, key="k-1").json()["results"]
        assert "limits:ignore" in str(result)


def test_recipient_may_be_stricter(app: App) -> None:
    path = "/recipients/ada/limits/weekly"
    assert app.put(path, {"max": 1}).status_code == 404
    app.put(ONE, WEEKLY)
    shown = app.put(path, {"max": 1, "min_gap_seconds": 60}).json()
    assert (shown["max"], shown["min_gap_seconds"], shown["is_stricter"]) == (1, 60, True)
    [listed] = app.get("/recipients/ada/limits").json()["results"]
    assert listed | {"next_at": shown["next_at"]} == shown
    # Not laxer than the limit.
    assert app.put(path, {"max": 50}).json()["max"] == 3
    assert app.put(path, {"max": 101}).status_code == 422
    shown = app.delete(path).json()
    assert (shown["max"], shown["is_stricter"]) == (3, False)
    assert audited() == ["Own values set for the limit weekly."] * 2 + [
        "Own values removed for the limit weekly."
    ]


def audited() -> list[str]:
    found = LogEntry.objects.filter(object_id="ada").order_by("id")
    return [entry.get_change_message().removeprefix("By client app: ") for entry in found]
