"""Stores browsers' subscriptions: who has an endpoint with its keys can push to the browser."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from domain.web_push import Fingerprint, SealedSubscription, Subscription
from notifyproject.platform.encryption import reencrypt

from .documents import DEVICES, DeviceDocument, PushSubscriptionDocument
from .sealing import associated_data, seal


def stored(subscription: Subscription) -> PushSubscriptionDocument:
    """Return a subscription as its device stores it. Raises NoEncryptionKeyError."""
    return {
        "host": subscription.host,
        "fingerprint": subscription.fingerprint,
        "secrets": seal(subscription),
    }


def sealed(document: DeviceDocument) -> SealedSubscription | None:
    """Return the subscription of a device, if it has one."""
    if (stored := document.get("subscription")) is None:
        return None
    return SealedSubscription(
        device_id=document["_id"],
        host=stored["host"],
        fingerprint=Fingerprint(stored["fingerprint"]),
        secrets=stored["secrets"],
    )


def count_by_key() -> dict[str, int]:
    """Return the active browsers of each VAPID key, by its fingerprint. Reads all devices."""
    stages: list[dict[str, Any]] = [
        {"$match": {"is_active": True, "subscription": {"$exists": True}}},
        {"$group": {"_id": "$subscription.fingerprint", "count": {"$sum": 1}}},
    ]
    rows: Iterator[Any] = DEVICES().aggregate(stages)
    return {row["_id"]: row["count"] for row in rows}


def encrypted_subscriptions() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each stored subscription, and a function that re-encrypts it: False if it changed."""
    wanted = {"subscription.secrets": {"$exists": True}}
    for document in DEVICES().find(wanted, {"subscription": 1}):
        stored = document["subscription"]["secrets"]
        yield stored, partial(_reencrypt, document["_id"], stored)


def _reencrypt(device_id: str, stored: str) -> bool:
    changed = reencrypt(stored, associated_data=associated_data(device_id))
    result = DEVICES().update_one(
        {"_id": device_id, "subscription.secrets": stored},
        {"$set": {"subscription.secrets": changed}},
    )
    return result.modified_count == 1
