"""Live data in every collection, and a check that it is unchanged."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from bson import ObjectId
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from django.db import connection

from access.clients import inbox_tokens
from devices.tokens import device_id
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.catalog import types
from notifications.intake.idempotency import record_id
from notifications.intake.requests import Caller
from notifications.store import leases
from notifications.store.inbox import Inbox
from notifyproject.db.collections import collection
from recipients import service_windows, suppressions
from tests.support.clients.api import App
from tests.support.clients.inbox import claims_of
from tests.support.clients.inbox import token as inbox_token
from tests.support.clients.isolation_requests import BROADCAST, CHUNK, FILE, KIND, PARTS
from tests.support.factories import notifications as factories
from tests.support.factories.digests import opened

Key = tuple[str, str]
"""A collection and a document's ID."""
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
WEBHOOKS = frozenset({"webhook_log", "provider_events", "early_receipts"})
"""The log and IDs of the sandbox's webhooks."""
PEOPLE: Mapping[str, Mapping[str, str]] = {
    "ada": {"email": "ada@example.com", "phone": "+447700900001", "name": "Ada"},
    "bob": {"email": "bounce+bob@example.com", "phone": "+447700900006", "name": "Bob"},
    "eve": {"email": "spam+eve@example.com", "phone": "+447700900007", "name": "Eve"},
    "ian": {"email": "unsubscribed+ian@example.com", "phone": "+447700900026", "name": "Ian"},
}
"""Addresses for which the sandbox has outcomes."""
FILE_KEY = {"Idempotency-Key": "key-of-the-file"}
BROADCAST_KEY = {"Idempotency-Key": "key-of-the-broadcast"}
DEVICES = {
    "a-token-of-adas": "ada",
    "another-token-of-adas": "ada",
    "unregistered-bobs": "bob",
    "wrong-sender-eves": "eve",
}
"""Device tokens and their owners."""


def seed(live: App) -> dict[str, str]:
    """Store data in every collection that an API key gives access to. Return the IDs by name."""
    for user_id, person in PEOPLE.items():
        assert live.put(f"/recipients/{user_id}", dict(person)).status_code == 201
        assert live.send(f"/topics/news/members/{user_id}", b"", method="PUT").status_code == 200
    wanted = {
        "preferences": {"contest_reminder": {"muted": True}, "marketing": {"channels": ["email"]}},
        "quiet_hours": {"enabled": False, "start": "22:00", "end": "07:00"},
    }
    assert live.put("/recipients/ada/preferences", wanted).status_code == 200
    for token, user_id in DEVICES.items():
        registration = {"user_id": user_id, "device_token": token, "platform": "android"}
        assert live.put("/devices", registration).status_code == 201
    assert live.put("/limits/held", {"max": 100, "period_seconds": 604_800}).status_code == 201
    assert live.put("/suppressions/email/held@example.com", {}).status_code == 200
    factories.suppress("gone@example.com", marketing_only=True)
    suppressions.record_soft_bounce(
        channel="whatsapp", address="+447700900006", event="one", now=utc_now()
    )
    written = [(person["phone"], utc_now()) for person in PEOPLE.values()]
    service_windows.record_inbound(written, now=utc_now())
    assert live.put("/types/parcel_lost", KIND).status_code == 201
    action = {"id": "approve", "label": "Approve", "style": "primary", "link": None}
    collection("notification_types").update_many({}, {"$set": {"actions": [action]}})
    types.invalidate_types()
    versions = "/types/parcel_lost/templates"
    for _ in range(2):
        assert live.post(versions, {"parts": PARTS}).status_code == 201
    assert live.post(f"{versions}/versions/1/publish").status_code == 200
    now = utc_now()
    factories.settled(DeliveryStatus.FAILED, client_id=live.id)
    factories.settled(DeliveryStatus.PENDING, client_id=live.id, at=now, created_at=now)
    factories.arrive(factories.settled(DeliveryStatus.SENT, client_id=live.id)["_id"])
    factories.accepted(client_id=live.id, entity_id="order-1", created_at=utc_now())
    inbox_tokens.revoke_all(client_id=live.id, user_id="bob")
    named = belongings(live)
    live.http.get("/api/v1/inbox", headers={"Authorization": f"Bearer {named['token']}"})
    return named


def belongings(app: App, *, is_test: bool = False) -> dict[str, str]:
    """Store data that belongs to one client. Return the IDs by name."""
    hook = {"url": "https://hooks.example.com/", "events": ["delivery.failed"]}
    assert app.put("/callbacks", hook).status_code == 200
    device, token = device_id("a-token-of-adas"), inbox_token(app)
    own: dict[str, Any] = {"client_id": app.id, "is_test": is_test}
    in_inbox = factories.accepted(
        channels=[Channel.IN_APP],
        created_at=utc_now() - timedelta(days=40),
        purge_at=utc_now() + timedelta(days=40),
        **own,
    )
    return {
        "notification": str(in_inbox["_id"]),
        "deleted": str(factories.settled(DeliveryStatus.SENT, **own)["_id"]),
        "push": str(_pushed(app, device, is_test=is_test)),
        "device": device,
        "discarded": device_id("another-token-of-adas"),
        "browser": device_id("https://web.push.apple.com/adas"),
        "token": token,
        "jti": claims_of(token)["jti"],
        "file": _uploaded(app),
        "broadcast": app.post("/broadcasts", BROADCAST, headers=BROADCAST_KEY).json()["id"],
        "digest": str(opened(at=utc_now(), **own)["_id"]),
        "message": app.post("/callbacks/test").json()["id"],
        "type": "parcel_lost",
        "tomorrow": (utc_now() + timedelta(days=1)).isoformat(),
    }


def _uploaded(app: App) -> str:
    """Return the ID of a client's one file, which is uploaded unless it was checked before."""
    file: dict[str, Any] = app.post("/files", FILE, headers=FILE_KEY).json()
    if file["missing_chunks"]:
        assert app.put(f"/files/{file['id']}/chunks/0", CHUNK).status_code == 200
    return str(file["id"])


def _pushed(app: App, device: str, *, is_test: bool) -> ObjectId:
    """Return the ID of a push that a device got."""
    push = Channel.PUSH
    claim = factories.claimed(channel=push, client_id=app.id, user_id="ada", is_test=is_test)
    begun = factories.start(replace(claim, device_ids=(device,)), provider="fcm")
    outcome = factories.settlement(
        begun,
        DeliveryStatus.SENT,
        provider="fcm",
        provider_message_id=None,
        accepted_targets=(device,),
    )
    leases.settle([outcome], now=factories.NOON)
    return claim.notification_id


def dump() -> dict[Key, RawBSONDocument]:
    """Return every document except cache versions."""
    database = connection.database.with_options(codec_options=RAW)
    return {
        (name, str(document["_id"])): document
        for name in database.list_collection_names()
        if name != "cache_versions"
        for document in database[name].find()
    }


@dataclass(kw_only=True)
class Untouched:
    """A snapshot of the database without the test client's own documents."""

    tester: App
    keys: Collection[str] = ()
    """Idempotency keys of the test client."""
    before: dict[Key, bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.before = self._live(dump())

    def check(self) -> None:
        """Fail if live data was changed, removed, or added since the last check."""
        before, now = self.before, self._live(dump())
        self.before = now
        changed = sorted(key for key, raw in before.items() if now.get(key) != raw)
        assert changed == [], "a test key has changed or removed live data"
        assert sorted(now.keys() - before.keys()) == [], "a test key has stored live data"

    def _live(self, everything: Mapping[Key, RawBSONDocument]) -> dict[Key, bytes]:
        own = self._own(everything)
        return {key: item.raw for key, item in everything.items() if key not in own}

    def _own(self, everything: Mapping[Key, RawBSONDocument]) -> set[Key]:
        """Return the keys of the test client's documents, including those in test mode."""
        own = self.tester.id
        tests = {
            document["_id"]
            for (name, _), document in everything.items()
            if name in ("notifications", "broadcasts", "digests", "audience_files")
            and (document.get("is_test"), document["client_id"]) == (True, own)
        }
        inboxes = [Inbox(own, user_id) for user_id in PEOPLE]
        callers = [
            Caller(client_id=own, idempotency_key=key)
            for key in (*self.keys, *BROADCAST_KEY.values(), *FILE_KEY.values())
        ]
        # By collection: the field that identifies a test document, and its values.
        marks: Mapping[str, tuple[str, Collection[Any]]] = {
            "notifications": ("_id", tests),
            "broadcasts": ("_id", tests),
            "digests": ("_id", tests),
            "audience_files": ("_id", tests),
            "audience_file_parts": ("file_id", tests),
            "delivery_attempts": ("notification_id", tests),
            "callbacks": ("_id", {own}),
            "callback_messages": ("client_id", {own}),
            "api_clients": ("_id", {own}),
            "test_clocks": ("_id", {own}),
            "test_outbox": ("client_id", {own}),
            "inbox_visits": ("_id", {inbox.key for inbox in inboxes}),
            "idempotency_keys": ("_id", {record_id(caller) for caller in callers}),
            "django_admin_log": ("user_id", {own}),
        }
        return {
            (name, key)
            for (name, key), document in everything.items()
            if name in WEBHOOKS
            or (name == "inbox_revocations" and self._is_own_revocation(key))
            or (name in marks and document[marks[name][0]] in marks[name][1])
        }

    def _is_own_revocation(self, name: str) -> bool:
        """Return whether a revocation is of the test client's token."""
        kind, _, of = name.partition(":")
        own = str(self.tester.id)
        if kind == "token":
            return of == inbox_tokens._jti(self.tester.id, of[: inbox_tokens._NONCE_LENGTH])
        return of in {hashlib.sha256(f"{own}|{user_id}".encode()).hexdigest() for user_id in PEOPLE}
