"""How much of something this process does at once."""

from django.conf import settings


def channel_threads() -> int:
    """Return how many of this process's threads a channel may have: most of them."""
    return max(settings.WORKER_THREADS * 3 // 4, 1)
