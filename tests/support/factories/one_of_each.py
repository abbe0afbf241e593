"""A document for every page of the console."""

from datetime import datetime, timedelta

import msgspec
from bson import ObjectId

from callbacks import outbox
from delivery import heartbeats, provider_pauses
from devices import registration
from devices.models import Platform
from devices.registration import Registration
from domain.rooms import RoomKind
from domain.states import BulkAction, DeliveryStatus
from monitoring import incidents
from monitoring.incidents import Finding
from monitoring.models import AlertKind
from notifications.bulk import decisions, operation, selection
from notifications.catalog import limits
from notifications.catalog.designs import Colours, Kind
from notifications.catalog.limits import LimitRequest
from notifications.content import design_changes
from notifications.content.design_changes import Change
from notifyproject.db.collections import collection
from rooms import registry as rooms
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import begun
from tests.support.factories.digests import opened
from tests.support.fakes.callback_receiver import called_back


def store_one_of_each(*, now: datetime) -> None:
    """Store a document of every model that has none yet."""
    factories.settled(DeliveryStatus.FAILED, at=now)
    collection("webhook_log").insert_one(
        {"provider": "sendgrid", "received_at": now, "body": "[]", "search_keys": []}
        | {"event_count": 0, "applied_count": 0, "unmatched_count": 0, "unreadable_count": 0}
    )
    collection("request_log").insert_one(
        {"client_id": ObjectId(), "request_id": "request-1", "method": "GET", "path": "/"}
        | {"status": 200, "duration_ms": 1, "body_bytes": 0, "at": now}
        | {"purge_at": now + timedelta(days=7)}
    )
    collection("recipients").insert_one(
        {"_id": "ada", "email": "ada@example.com", "attributes": {}, "preferences": {}}
        | {"is_active": True, "created_at": now, "updated_at": now}
    )
    device = Registration(user_id="ada", token="token", platform=Platform.IOS)
    registration.register(device, now=now)
    factories.suppress(at=now)
    request = LimitRequest(categories=["marketing"], max=3, period_seconds=604_800)
    limits.define_limit("weekly", limits.validate_limit("weekly", request), now=now)
    begun(at=now)
    opened(at=now)
    failures = selection.select_failures(channel=None, code=None, since=None)
    by = operation.UNKNOWN_STAFF
    decisions.preview(action=BulkAction.RETRY, selection=failures, by=by, now=now)
    provider_pauses.pause("smtp", by="maria", reason="", now=now)
    heartbeats.record_worker_heartbeat(now=now)
    finding = Finding(
        rule_id=ObjectId(), kind=AlertKind.FAILURES, subject="all", title="Many", detail="Many."
    )
    incidents.record(finding, now=now)
    made = called_back("http://127.0.0.1/hooks", now=now)
    outbox.send_test(made.document["_id"], now=now)
    _store_design(now)
    rooms.create(
        slug="ops",
        kind=RoomKind.SLACK_BOT,
        name="Operations",
        target="C024BE91L",
        min_gap_seconds=1,
        now=now,
    )
    collection("saved_views").insert_one(
        {"name": "Failed mail", "owner_id": ObjectId(), "is_shared": True, "position": 0}
        | {"list": "notifications_failednotification", "query": "channel=email"}
        | {"source": "notifications", "match": "{}"}
    )
    collection("api_clients").insert_one(
        {"name": "Shop", "scopes": ["admin"], "is_test": False, "is_active": True, "keys": []}
        | {"created_at": now}
    )


def _store_design(now: datetime) -> None:
    """Store an item of each kind."""
    colours = msgspec.to_builtins(Colours())
    brand = {"name": "Acme", "logo": None, "colours": colours, "footer": "", "layout": None}
    html = "<html><body>{{ content }} <a href='{{ unsubscribe_url }}'>Stop</a></body></html>"
    items = [
        (Kind.BRAND, "acme", brand),
        (Kind.LAYOUT, "plain", html),
        (Kind.PARTIAL, "help", {"default": {"text": "Questions?", "html": "<p>Questions?</p>"}}),
        (Kind.TRANSLATION, "pt-BR", {"bye": "Tchau, {name}"}),
    ]
    changes = [
        Change(kind=kind, name=name, content=content, replaces=None, pointer="")
        for kind, name, content in items
    ]
    design_changes.store(changes, created_by="staff:maria", now=now)
