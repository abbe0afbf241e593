"""What waits in a worker's queues, on a real broker."""

from typing import Any

import pytest
import redis

from notifyproject.platform import watchdog


def test_messages_are_counted_over_all_queues(broker: redis.Redis) -> None:
    broker.rpush("email.normal", "one", "two")
    broker.rpush("push.low", "three")
    broker.rpush("somebody.elses", "four")
    assert watchdog.count_waiting(["email.normal", "push.low", "sms.high"]) == 3


@pytest.mark.usefixtures("valkey_anew")
def test_without_the_broker_nothing_is_known_to_wait(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert watchdog.count_waiting(["email.normal"]) == 0
