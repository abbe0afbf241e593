"""Which texts in a queue are messages, and what happens to the others."""

import json
from typing import Any

import pytest
import redis
from django.conf import settings
from kombu.connection import Connection

from notifyproject.platform import broker as messages
from notifyproject.platform import valkey_transport
from notifyproject.platform.valkey_transport import is_message
from tests.support.tables import each_case

MESSAGE: dict[str, Any] = json.loads(messages.encode("notifications.deliver", args=[1], queue="q"))
PROPERTIES = MESSAGE["properties"]


def changed(**properties: Any) -> bytes:
    return json.dumps({**MESSAGE, "properties": {**PROPERTIES, **properties}}).encode()


def test_own_message_is_one() -> None:
    assert is_message(messages.encode("notifications.deliver", args=[["a"], "email"], queue="q"))
    assert is_message(changed())


@each_case(
    "raw",
    [
        b"not celery",
        b"",
        b"{}",
        b"[1]",
        b"null",
        b"7",
        b"\xff\xfe",
        b'"text"',
        b"[" * 100_000,
        b'{"body": "x"}',
        b'{"properties": {}}',
        b'{"properties": 7}',
        b"NaN",
        b"1e999999",
        changed(delivery_tag=None),
        changed(delivery_info={}),
        changed(delivery_info=None),
        changed(body_encoding="rot13"),
        json.dumps({**MESSAGE, "body": {"a": 1}}).encode(),
        json.dumps({**MESSAGE, "body": "a"}).encode(),
        json.dumps({**MESSAGE, "x": {"__type__": "date", "__value__": "no date"}}).encode(),
        messages.encode("notifications.deliver", args=[1], queue="q")[:-3],
    ],
)
def test_foreign_or_broken_text_is_none(raw: bytes) -> None:
    assert not is_message(raw)


@pytest.mark.parametrize("stored", ["not json", "[1]", "null", '[{"a": 1}, "", ""]'])
def test_unreadable_message_of_a_dead_worker_is_forgotten(broker: redis.Redis, stored: str) -> None:
    """From https://github.com/celery/kombu/issues/270."""
    broker.hset("unacked", "t", stored)
    broker.zadd("unacked_index", {"t": 1})
    with Connection(settings.CELERY_BROKER_URL, transport=valkey_transport.Transport) as connection:
        connection.default_channel.qos.restore_by_tag("t")
    assert (broker.hlen("unacked"), broker.zcard("unacked_index")) == (0, 0)


def test_worker_uses_this_transport_and_outlives_what_valkey_refuses() -> None:
    """From https://github.com/celery/celery/issues/7946."""
    valkey_transport.install()
    assert Connection("redis://127.0.0.1/0").transport_cls == "redis"
    assert Connection("redis://127.0.0.1/0").get_transport_cls() is valkey_transport.Transport
    assert settings.CELERY_BROKER_CHANNEL_ERROR_RETRY
    assert settings.CELERY_WORKER_CONSUMER == "notifyproject.platform.consumer:Consumer"
