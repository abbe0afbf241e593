"""A form whose object another user or client has stored or deleted after the form's check."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.contrib.messages import get_messages
from django.db.models import Model
from django.db.models.signals import pre_save
from django.test import Client

from access.models import APIClient, Scope, StaffUser
from domain.time import utc_now
from notifications.catalog import definitions, limits, types
from notifications.catalog.definitions import TypeRequest
from notifications.catalog.limits import LimitRequest
from notifications.content import type_writes
from notifications.models import Limit
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "broker")

TYPES, LIMITS = "/admin/notifications/notificationtype/", "/admin/notifications/limit/"
STAFF, ROLES = "/admin/access/staffuser/", "/admin/auth/group/"
CLIENTS = "/admin/access/apiclient/"
TYPE_FORM = {
    "slug": "parcel_lost",
    "name": "By the console",
    "category": "transactional",
    "priority": "high",
    "channels": ["email"],
    "max_retries": "2",
    "on_unknown": "fail",
    "plan_until": "delivered",
}
LIMIT_FORM = {
    "name": "weekly",
    "channels": ["email"],
    "max": "3",
    "period_seconds": "604800",
    "min_gap_seconds": "0",
    "overflow": "later",
}


@pytest.fixture(autouse=True)
def no_limits_left() -> Iterator[None]:
    yield
    collection("limits").delete_many({})
    limits.invalidate_limits()


@contextmanager
def just_before_storing(model: type[Model], act: Callable[[], Any]) -> Iterator[None]:
    """Act once, between the check of a form and its write."""

    def receive(**_: Any) -> None:
        pre_save.disconnect(receive, sender=model)
        act()

    pre_save.connect(receive, sender=model, weak=False)
    try:
        yield
    finally:
        pre_save.disconnect(receive, sender=model)


def errors(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200
    return dict(answer.context["adminform"].form.errors)


def define_type() -> None:
    request = TypeRequest(name="By the API", category="alert", channels=["in_app"])
    fields = definitions.validate_type("parcel_lost", request)
    types.define_type("parcel_lost", fields, now=utc_now())


def define_limit(maximum: int = 7) -> None:
    request = LimitRequest(channels=["email"], max=maximum, period_seconds=60)
    limits.define_limit("weekly", limits.validate_limit("weekly", request), now=utc_now())


def test_type_of_the_api_is_not_replaced_by_a_new_one(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = type_writes.store

    def be_overtaken(*given: Any, **fields: Any) -> None:
        monkeypatch.setattr(type_writes, "store", store)
        define_type()
        store(*given, **fields)

    monkeypatch.setattr(type_writes, "store", be_overtaken)
    answer = console.post(f"{TYPES}add/", TYPE_FORM)
    assert errors(answer) == {"slug": ["A type with this slug already exists."]}
    assert 'value="By the console"' in answer.content.decode(), "what was entered is kept"
    stored = types.read_type("parcel_lost")
    assert stored is not None
    assert (stored["name"], stored["channels"]) == ("By the API", ["in_app"])
    assert stored["categories"] == ["alert"]


def test_limit_of_the_api_is_not_replaced_by_a_new_one(console: Client) -> None:
    with just_before_storing(Limit, define_limit):
        answer = console.post(f"{LIMITS}add/", LIMIT_FORM)
    assert errors(answer) == {"name": ["There is a limit with this name."]}
    stored = limits.read_limit("weekly")
    assert stored is not None
    assert stored["max"] == 7


def test_limit_that_the_api_deletes_is_not_stored_again(console: Client) -> None:
    define_limit()
    changed = {name: value for name, value in LIMIT_FORM.items() if name != "name"}
    with just_before_storing(Limit, partial(limits.remove_limit, "weekly")):
        answer = console.post(f"{LIMITS}weekly/change/", changed)
    assert answer.status_code == 302
    (message,) = get_messages(answer.wsgi_request)
    assert "Perhaps it was deleted?" in str(message)
    assert limits.read_limit("weekly") is None


def test_taken_name_is_an_error_of_its_field(console: Client) -> None:
    take = partial(StaffUser.objects.create_user, "maria")
    new = {"username": "maria", "password1": "long-enough-77", "password2": "long-enough-77"}
    with just_before_storing(StaffUser, take):
        assert "username" in errors(console.post(f"{STAFF}add/", new))
    with just_before_storing(Group, partial(Group.objects.create, name="Support")):
        assert "name" in errors(console.post(f"{ROLES}add/", {"name": "Support"}))
    role = Group.objects.create(name="Sales")
    with just_before_storing(Group, partial(Group.objects.create, name="Finance")):
        answer = console.post(f"{ROLES}{role.pk}/change/", {"name": "Finance"})
    assert "name" in errors(answer)


def test_of_two_clients_with_one_name_one_is_stored(console: Client) -> None:
    other = signed_in(make_staff("second", superuser=True))
    for number in range(3):
        new = {"name": f"Shop {number}", "scopes": [Scope.NOTIFICATIONS_WRITE.value]}
        answers = at_once(
            *(partial(client.post, f"{CLIENTS}add/", new) for client in (console, other))
        )
        assert sorted(answer.status_code for answer in answers) == [200, 302]
        assert APIClient.objects.filter(name=new["name"]).count() == 1
