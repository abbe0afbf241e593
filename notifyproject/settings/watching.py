"""How what the service does can be watched: logs, figures, traces."""

from typing import Any

from .environment import Environment


def configure(environment: Environment) -> dict[str, Any]:
    """Return the settings that follow from the environment."""
    from ..platform.logs import logging_config

    return {
        "LOGGING": logging_config(level=environment.LOG_LEVEL, form=environment.LOG_FORMAT),
        "LOGGING_CONFIG": "notifyproject.platform.logs.configure",
        "METRICS_TOKEN": environment.METRICS_TOKEN,
        "OTEL_EXPORTER_OTLP_ENDPOINT": environment.OTEL_EXPORTER_OTLP_ENDPOINT,
    }
