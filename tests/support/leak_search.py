"""Search for a text in everything that is stored or shown."""

from collections.abc import Iterator
from typing import Any

import bson
import redis
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from notifyproject.db.collections import database


def documents_containing(text: str) -> list[str]:
    """Return the collections with a document that contains a text."""
    return sorted(
        name
        for name in database().list_collection_names()
        for document in database()[name].find()
        if text.encode() in bson.encode(document)
    )


def keys_with(client: redis.Redis, text: str) -> list[bytes]:
    """Return Valkey's keys whose name or value contains a text."""
    found = []
    for key in client.scan_iter():
        value = b" ".join(_values(client, key))
        if text.encode() in key + value:
            found.append(key)
    return found


def _values(client: Any, key: bytes) -> Iterator[bytes]:
    match client.type(key):
        case b"string":
            yield client.get(key) or b""
        case b"list":
            yield from client.lrange(key, 0, -1)
        case b"set":
            yield from client.smembers(key)
        case b"hash":
            for name, value in client.hgetall(key).items():
                yield name + b" " + value
        case b"zset":
            yield from client.zrange(key, 0, -1)
        case other:
            yield repr((other, client.dump(key))).encode()


def pages(client: Client, notification_ids: list[str]) -> Iterator[tuple[str, str]]:
    """Yield every console list, and the pages of these notifications, with their HTML."""
    urls = [reverse("admin:index")]
    urls += [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    one = "admin:notifications_notification_change"
    urls += [reverse(one, args=[each]) for each in notification_ids]
    for row in database()["webhook_log"].find({}, {"_id": 1}):
        urls.append(reverse("admin:notifications_webhooklog_change", args=[row["_id"]]))
    for url in urls:
        answer = client.get(url)
        assert answer.status_code == 200, url
        yield url, answer.content.decode()
    for action in ("retry", "resend", "cancel"):
        for each in notification_ids[:2]:
            url = reverse(f"admin:notifications_notification_{action}", args=[each])
            yield url, client.post(url).content.decode()
