"""Names of the Celery queues."""

from .states import Channel, Priority

SERVICE = "service"
"""Short tasks that other work depends on, such as the sweep."""
CALLBACKS = "callbacks"
BROADCASTS = "broadcasts"
"""The queue of broadcast pages, with the lowest priority."""


def queue_name(channel: Channel, priority: Priority) -> str:
    """Return the name of the queue for a channel and priority."""
    return f"{channel.value}.{priority.value}"
