"""Names of the Celery queues."""

from .channels import Channel
from .states import Priority

SERVICE = "service"
"""Short tasks that other work depends on, such as the sweep."""
DIGESTS = "digests"
"""The queue of tasks that close digests, and that do what is due by test clocks. It comes before
low-priority deliveries."""
CALLBACKS = "callbacks"
BROADCASTS = "broadcasts"
"""The queue of broadcast pages and of files for them, with the lowest priority."""


def queue_name(channel: Channel, priority: Priority) -> str:
    """Return the name of the queue for a channel and priority."""
    return f"{channel}.{priority}"
