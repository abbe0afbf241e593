"""The audit log: what it says about changes, search, and bulk operations."""

import pytest
from bson import ObjectId
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.test import Client

from access.models import APIClient, StaffUser
from devices.models import Device
from domain.states import BulkAction, DeliveryStatus
from domain.time import utc_now
from notifications.actions.actions import Staff, act_as_staff
from notifications.models import BulkOperation, NotificationType
from notifyproject.platform import audit
from tests.support.clients.api import new_app
from tests.support.clients.console import make_staff
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/admin/logentry/"


def entries(client: Client, query: str = "") -> list[str]:
    rows = client.get(f"{LIST}{query}").context["cl"].result_list
    return [admin.site._registry[LogEntry].changes(row) for row in rows]


def save(client: Client, url: str, **changes: object) -> None:
    """Submit a form with its present values and some changes."""
    form = client.get(url).context["adminform"].form
    values = {
        name: form.get_initial_for_field(f, name) for name, f in form.fields.items()
    } | changes
    given = {name: value for name, value in values.items() if value not in (None, False)}
    assert client.post(url, given).status_code == 302


def test_changed_values_are_named(console: Client) -> None:
    account = make_staff("rui")
    url = f"/admin/access/staffuser/{account.pk}/change/"
    when = {"last_login_0": "", "last_login_1": "", "date_joined_0": "", "date_joined_1": ""}
    save(console, url, first_name="Ruy", email="ruy@example.com", is_active=False, **when)
    (said,) = entries(console, f"?q={account.pk}")
    assert "First name (Rui → Ruy)" in said
    assert "Active (yes → no)" in said
    assert "r***@example.com → r***@example.com" in said, "addresses are masked"


def test_changed_choices_are_named_as_added_and_removed(console: Client) -> None:
    role = Group.objects.create(name="Helpers")
    names = ("view_notification", "view_recipient", "view_device")
    seen, people, devices = (Permission.objects.get(codename=name) for name in names)
    role.permissions.set([seen, people])
    url = f"/admin/auth/group/{role.pk}/change/"
    console.post(url, {"name": "Helpers", "permissions": [str(seen.pk), str(devices.pk)]})
    (said,) = entries(console)
    assert f"added {devices.name}; removed {people.name}" in said


def test_entries_are_found_by_the_id_and_the_name_of_the_object(
    console: Client, admin_user: StaffUser
) -> None:
    for slug, name in (("order_shipped", "Order shipped"), ("mfa_code", "Code")):
        audit.record(
            by=admin_user.pk, model=NotificationType, object_id=slug, name=name, message=slug
        )
    assert entries(console, "?q=order_shipped") == ["order_shipped"]
    assert entries(console, "?q=Code") == ["mfa_code"]
    assert entries(console, "?q=nothing") == []


def test_bulk_operation_is_one_entry(console: Client, admin_user: StaffUser) -> None:
    now, operation = utc_now(), ObjectId()
    by = Staff(id=admin_user.pk, username="maria")
    audit.record(
        by=by.id, model=BulkOperation, object_id=str(operation), name="retry", message="Started."
    )
    documents = [factories.settled(DeliveryStatus.FAILED, at=now, created_at=now) for _ in range(3)]
    for document in documents:
        act_as_staff(
            BulkAction.RESEND,
            notification_id=document["_id"],
            channels=None,
            by=by,
            now=now,
            part_of=operation,
        )
    assert entries(console) == ["Started."]
    (said,) = entries(console, f"?q={documents[0]['_id']}")
    assert said.endswith(f"by bulk operation {operation}.")
    assert LogEntry.objects.count() == 7


def test_changes_of_clients_are_apart_from_those_of_people(
    console: Client, admin_user: StaffUser
) -> None:
    app = new_app("shop")
    for number in range(3):
        audit.record_client_action(
            APIClient.objects.get(pk=app.id),
            model=Device,
            object_id=f"d-{number}",
            message="Registered.",
        )
    gone = ObjectId()
    for by in (admin_user.pk, gone):
        audit.record(by=by, model=Device, object_id="d-1", name="d-1", message=f"By {by}.")
    people = {f"By {admin_user.pk}.", f"By {gone}."}
    for query, shown in {
        "": people,
        "?who=staff": people,
        "?who=clients": {"Registered."},
        "?who=all": {*people, "Registered."},
        "?q=d-1": {*people, "Registered."},
        f"?user={app.id}": {"Registered."},
    }.items():
        assert set(entries(console, query)) == shown, query
