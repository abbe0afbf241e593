"""What another program, or an operator, puts into a queue costs a worker only itself.

From https://github.com/celery/celery/issues/1113, https://github.com/celery/celery/issues/4308,
https://github.com/celery/kombu/issues/2421, and https://github.com/celery/kombu/issues/270.
"""

import base64
import json
from typing import Any

import redis

from domain.channels import Channel
from domain.states import Priority
from domain.time import utc_now
from notifications.queueing import wakeups
from notifyproject.db.collections import collection
from notifyproject.platform import broker as messages
from tests.faults.conftest import Start
from tests.support.factories import notifications as factories
from tests.support.waiting import until

QUEUE = "email.normal"
MESSAGE: dict[str, Any] = json.loads(
    messages.encode(wakeups.DELIVER, args=[[], "email", "normal"], queue=QUEUE)
)


def with_headers(**headers: Any) -> dict[str, Any]:
    """Return a message with these headers. The value ... leaves a header out."""
    merged = {**MESSAGE["headers"], **headers}
    return {**MESSAGE, "headers": {k: v for k, v in merged.items() if v is not ...}}


def with_body(raw: bytes) -> dict[str, Any]:
    return {**MESSAGE, "body": base64.b64encode(raw).decode()}


FOREIGN: list[Any] = [
    "not celery",
    "{}",
    "[1]",
    "null",
    "",
    "\x00",
    "[" * 10_000,
    '{"body": "x"}',
    {**MESSAGE, "properties": {"delivery_tag": "1"}},
    {**MESSAGE, "body": "a"},
    {**MESSAGE, "headers": None},
    {**MESSAGE, "headers": []},
    {**MESSAGE, "headers": {}},
    with_headers(task=[1]),
    with_headers(task=7),
    with_headers(task="nope"),
    with_headers(id=...),
    with_headers(id=[1]),
    with_headers(stamped_headers=7),
    with_headers(eta=[1]),
    with_headers(eta="tomorrow"),
    with_headers(expires=[1]),
    with_headers(timelimit="x"),
    with_headers(retries="x"),
    with_headers(compression="zip9"),
    {**MESSAGE, "content-encoding": "klingon"},
    {**MESSAGE, "content-type": "x/python"},
    with_body(b"not json"),
    with_body(b"null"),
    with_body(b"[]"),
    with_body(b'[["x"], {}, {}]'),
]


def test_foreign_messages_neither_end_nor_delay_a_worker(
    start_worker: Start, broker: redis.Redis
) -> None:
    worker = start_worker()
    for foreign in FOREIGN:
        broker.lpush(QUEUE, foreign if isinstance(foreign, str) else json.dumps(foreign))
    document = factories.accepted(created_at=utc_now())
    wakeups.send_wakeup(
        [document["_id"]], channel=Channel.EMAIL, priority=Priority.NORMAL, now=utc_now()
    )

    def is_sent() -> bool:
        found = collection("notifications").find_one({"_id": document["_id"]})
        return found is not None and found["delivery"][0]["status"] in ("sent", "delivered")

    until(is_sent, otherwise=lambda: f"not sent; worker: {worker.poll()}")
    assert worker.poll() is None
    until(lambda: broker.llen(QUEUE) == 0)
    assert worker.poll() is None
