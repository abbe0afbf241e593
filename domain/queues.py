"""Names of the Celery queues."""

from .states import Channel, Priority

CALLBACKS = "callbacks"


BROADCASTS = "broadcasts"
"""The queue of broadcasts' pages: served last, when nothing else waits."""


def queue_name(channel: Channel, priority: Priority) -> str:
    """Return the name of the queue that deliveries of this channel and priority wait in."""
    return f"{channel.value}.{priority.value}"
