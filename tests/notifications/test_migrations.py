"""Migrations that change what is stored."""

from importlib import import_module

import pytest
from django.db import connection

from access.clients import registry
from access.models import Scope
from domain.time import utc_now
from notifyproject.db.collections import collection

pytestmark = pytest.mark.usefixtures("db")


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
