"""Names of the Celery queues."""

from .states import Channel, Priority

SERVICE = "service"
"""Short tasks that other work depends on, such as the sweep."""
CALLBACKS = "callbacks"
BROADCASTS = "broadcasts"
"""Pages of broadcasts. Last in order, so accepted notifications go first."""


def queue_name(channel: Channel, priority: Priority) -> str:
    """Return the queue of deliveries of a channel and priority."""
    return f"{channel.value}.{priority.value}"
