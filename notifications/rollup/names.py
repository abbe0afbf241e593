"""What is counted. Pure."""

from enum import StrEnum


class Metric(StrEnum):
    """A figure; all count deliveries, which are one channel of a notification."""

    ACCEPTED = "accepted"
    """Accepted in the span. By channel, type."""
    TRIED = "tried"
    """Attempts of the span. By channel, type, provider, status."""
    SENT = "sent"
    """Tried in the span for the last time, and taken by the provider. By channel, type, provider.
    """
    DELIVERED = "delivered"
    """Of these, those known to have arrived."""
    READ = "read"
    """Of these, those known to have been opened."""
    FAILED = "failed"
    """Tried in the span for the last time, and failed for good. By channel, type, provider, code.
    """
    RETRIED = "retried"
    """Attempts of the span after which there was or will be another one."""
    UNKNOWN = "unknown"
    """Attempts of the span that ended without anybody knowing how."""
    WITHHELD = "withheld"
    """Expired, cancelled or suppressed. By channel, type, status."""
    LATENCY = "latency"
    """Of what was sent: from when it was due, which is its acceptance unless it was scheduled,
    until the provider took it. By channel, type, provider; with a histogram."""
