"""Migrations that change what is stored."""

from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from access.clients import registry
from access.models import Scope
from domain.states import DeliveryStatus as S
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db")


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("notifications", name)])


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


def test_resolved_errors_are_removed() -> None:
    sent, failed = (factories.settled(status) for status in (S.SENT, S.FAILED))
    notifications = collection("notifications")
    notifications.update_one({"_id": sent["_id"]}, {"$set": {"error": "It was late."}})
    migrate("0009_deletion")
    migrate("0010_resolved_errors")
    assert "error" not in factories.read(sent["_id"])
    assert factories.read(failed["_id"])["error"] == failed["error"]
