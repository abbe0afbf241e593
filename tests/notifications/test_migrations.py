"""Migrations that change what is stored."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from access.clients import registry
from access.models import Scope
from domain.plans import Until
from domain.states import Channel
from domain.states import DeliveryStatus as S
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")
HOUR = timedelta(hours=1)


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
    try:
        migrate("0010_resolved_errors")
    finally:
        # Later tests need the indexes of later migrations.
        latest = MigrationExecutor(connection).loader.graph.leaf_nodes("notifications")
        MigrationExecutor(connection).migrate(latest)
    assert "error" not in factories.read(sent["_id"])
    assert factories.read(failed["_id"])["error"] == failed["error"]


def test_fallback_of_an_open_notification_becomes_the_second_step_of_a_plan() -> None:
    number_steps = import_module("notifications.migrations.0019_plans").number_steps
    channels = (Channel.EMAIL, Channel.PUSH, Channel.IN_APP)
    one = factories.accepted(channels=channels)["_id"]
    waits = {"delivery.1.instead_of": "email", "delivery.1.next_attempt_at": NOON + HOUR}
    collection("notifications").update_one({"_id": one}, {"$set": waits})
    with connection.schema_editor() as editor:
        number_steps(None, editor)
    document = factories.read(one)
    assert document["plan_until"] == "delivered"
    assert [d.get("step") for d in document["delivery"]] == [1, 2, None]
    assert factories.claim(one).later_channels == (Channel.PUSH,)


def test_fallback_that_a_process_of_an_older_release_stores_is_a_second_step() -> None:
    one = factories.accepted(channels=(Channel.EMAIL, Channel.PUSH))["_id"]
    waits = {"delivery.1.instead_of": "email", "delivery.1.next_attempt_at": NOON + HOUR}
    collection("notifications").update_one({"_id": one}, {"$set": waits})
    push = factories.claim(one, at=NOON + HOUR, channel=Channel.PUSH)
    assert (push.step, push.plan_until) == (2, Until.DELIVERED)
