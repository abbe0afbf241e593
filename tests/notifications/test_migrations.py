"""Migrations that change what is stored."""

from importlib import import_module

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from access.clients import registry
from access.models import Scope
from domain.time import utc_now
from notifyproject.db.collections import collection

pytestmark = pytest.mark.usefixtures("db")

OLD, NEW = "Can see addresses whole", "Can see unmasked addresses"


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("notifications", name)])


def other_names() -> set[tuple[str]]:
    return set(Permission.objects.exclude(codename="view_addresses").order_by().values_list("name"))


def test_the_stored_permission_for_addresses_gets_its_new_name() -> None:
    stored = Permission.objects.filter(codename="view_addresses").order_by()
    assert list(stored.values_list("name", flat=True)) == [NEW]
    migrate("0003_templates")
    try:
        stored.update(name=OLD)
        others = other_names()
        migrate("0004_unmasked_addresses")
    finally:
        call_command("migrate", verbosity=0)
    assert list(stored.values_list("name", flat=True)) == [NEW]
    assert other_names() == others


def test_clients_that_send_may_go_on_sending_critical_notifications() -> None:
    grant = import_module("access.migrations.0003_notifications_critical").grant
    sender, reader = (
        registry.create_client(name=scope, scopes=[scope], now=utc_now())
        for scope in (Scope.NOTIFICATIONS_WRITE, Scope.NOTIFICATIONS_READ)
    )
    with connection.schema_editor() as editor:
        grant(None, editor)
    scopes = {one["_id"]: one["scopes"] for one in collection("api_clients").find()}
    assert scopes[sender] == ["notifications:write", "notifications:critical"]
    assert scopes[reader] == ["notifications:read"]
