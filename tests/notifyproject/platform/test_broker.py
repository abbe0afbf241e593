"""Messages of the broker are those that Celery itself sends."""

import json
from base64 import b64decode
from datetime import timedelta
from typing import Any

import pytest
import redis
from celery import current_app

from domain.time import utc_now
from notifyproject.platform import broker as platform_broker

QUEUE, TASK = "email.high", "notifications.deliver"
ARGS = [["6745e3f09b1d4c2a7f3e8b51", "é"], "email", "high"]
RANDOM = {"id", "root_id", "correlation_id", "delivery_tag"}
"""Parts of a message that are new for each."""
RESULTS = {"reply_to"}
"""Where a worker sends a result: there are none."""


def parts(message: bytes) -> dict[str, Any]:
    """Return the parts of a message with its body decoded, without those that differ."""
    found = json.loads(message)
    body, headers, properties = (found.pop(name) for name in ("body", "headers", "properties"))
    assert headers["id"] == headers["root_id"] == properties["correlation_id"]
    fixed = {
        name: value
        for name, value in {**headers, **properties}.items()
        if name not in RANDOM | RESULTS
    }
    return {**found, "body": json.loads(b64decode(body)), **fixed}


@pytest.mark.parametrize("seconds", [0, 3])
def test_message_is_the_one_that_celery_sends(broker: redis.Redis, seconds: int) -> None:
    now = utc_now()
    at = now + timedelta(seconds=seconds) if seconds else None
    current_app.send_task(TASK, args=ARGS, queue=QUEUE, eta=at, retry=False, ignore_result=True)
    assert platform_broker.publish(TASK, args=ARGS, queue=QUEUE, at=at, now=now)
    ours, celerys = broker.lrange(QUEUE, 0, -1)
    assert parts(ours) == parts(celerys)
