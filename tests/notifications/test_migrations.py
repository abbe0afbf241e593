"""Migrations that change what is stored."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from domain.states import DeliveryStatus as S
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db")

OLD, NEW = "Can see addresses whole", "Can see unmasked addresses"


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("notifications", name)])


def other_names() -> set[tuple[str]]:
    return set(Permission.objects.exclude(codename="view_addresses").order_by().values_list("name"))


def test_resolved_errors_are_removed() -> None:
    sent, failed = (factories.settled(status) for status in (S.SENT, S.FAILED))
    notifications = collection("notifications")
    notifications.update_one({"_id": sent["_id"]}, {"$set": {"error": "It was late."}})
    migrate("0006_deletion")
    migrate("0007_resolved_errors")
    assert "error" not in factories.read(sent["_id"])
    assert factories.read(failed["_id"])["error"] == failed["error"]


def test_the_stored_permission_for_addresses_gets_its_new_name() -> None:
    stored = Permission.objects.filter(codename="view_addresses").order_by()
    assert list(stored.values_list("name", flat=True)) == [NEW]
    migrate("0003_templates")
    try:
        stored.update(name=OLD)
        others = other_names()
    finally:
        migrate("0004_unmasked_addresses")
    assert list(stored.values_list("name", flat=True)) == [NEW]
    assert other_names() == others
