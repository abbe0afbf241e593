"""How long what is kept, where that is a setting."""

from typing import Any

from .environment import Environment


def configure(environment: Environment) -> dict[str, Any]:
    """Return the settings that say how long: days, all of them."""
    return {
        "ANALYTICS_EVENTS_DAYS": environment.ANALYTICS_EVENTS_DAYS,
        "RETENTION_CONTENT_DAYS": environment.RETENTION_CONTENT_DAYS,
        "RETENTION_METADATA_DAYS": environment.RETENTION_METADATA_DAYS,
    }
