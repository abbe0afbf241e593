"""Limits in the console: the list, the form, and the texts of a held message."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog import limits
from notifications.store import acceptance
from notifyproject.db.collections import collection
from tests.support.clients.console import register_ada
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/limit/"
ADD = f"{LIST}add/"
FORM = {
    "name": "weekly",
    "types": [],
    "categories": ["marketing"],
    "channels": ["email", "push"],
    "max": "3",
    "period_seconds": "604800",
    "min_gap_seconds": "3600",
    "overflow": "later",
}


@pytest.fixture(autouse=True)
def no_limits_left() -> Iterator[None]:
    yield
    collection("limits").delete_many({})
    limits.invalidate_limits()


def errors(answer: Any) -> dict[str, Any]:
    return dict(answer.context["adminform"].form.errors)


def test_limit_is_added_changed_and_removed(console: Client) -> None:
    assert console.post(ADD, FORM).status_code == 302
    [limit] = limits.active_limits()
    assert (limit.name, limit.maximum, limit.period.days) == ("weekly", 3, 7)
    page = console.get(LIST).content.decode()
    for text in ("Marketing", "Email, Push", "3 in 7 days", "1 hour", "Send later"):
        assert text in page
    changed = {name: value for name, value in FORM.items() if name != "name"} | {"max": "1"}
    assert console.post(f"{LIST}weekly/change/", changed).status_code == 302
    assert [limit.maximum for limit in limits.active_limits()] == [1]
    assert console.post(f"{LIST}weekly/delete/", {"post": "yes"}).status_code == 302
    assert list(limits.active_limits()) == []


@each_case(
    "fields, field",
    [
        ({"max": "0"}, "max"),
        ({"name": "Weekly!"}, "name"),
        ({"channels": []}, "channels"),
        ({"min_gap_seconds": "604800"}, "min_gap_seconds"),
    ],
)
def test_invalid_limit_is_refused(console: Client, fields: dict[str, Any], field: str) -> None:
    answer = console.post(ADD, FORM | fields)
    assert answer.status_code == 200
    assert list(errors(answer)) == [field]
    assert list(limits.active_limits()) == []


def test_second_limit_of_a_name_is_refused(console: Client) -> None:
    console.post(ADD, FORM)
    assert list(errors(console.post(ADD, FORM | {"max": "9"}))) == ["name"]
    assert [limit.maximum for limit in limits.active_limits()] == [3]


@pytest.mark.usefixtures("fcm")
def test_held_message_names_the_limit_and_the_time(console: Client) -> None:
    request = limits.LimitRequest(max=1, period_seconds=86_400)
    limits.define_limit("daily", limits.validate_limit("daily", request), now=utc_now())
    ids = []
    for _ in range(2):
        notification = factories.new(user_id="ada")
        acceptance.accept([notification], now=utc_now())
        ids.append(notification.id)
    now = utc_now()
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: now)
    page = console.get(f"/admin/notifications/notification/{ids[1]}/change/").content.decode()
    assert "Held: over a limit" in page
    assert "1 of 1 in 1 day (limit daily)." in page
    register_ada()
    recipient = console.get("/admin/recipients/recipient/ada/change/").content.decode()
    assert "1 of 1 in 1 day; 1 held; next" in recipient
    listed = console.get("/admin/notifications/waitingnotification/?reason=over_limit")
    assert str(ids[1]) in listed.content.decode()
