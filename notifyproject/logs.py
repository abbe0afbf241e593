"""Structured logs: one line an event, with ids and never an address or a body."""

import logging.config
from typing import Any

import structlog

SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def logging_config(*, level: str, form: str) -> dict[str, Any]:
    """Return a logging configuration; ``form`` is ``console`` for people, ``json`` for machines."""
    if form == "json":
        final = [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    else:
        # Plain tracebacks: the rich ones show local variables, addresses and bodies among them.
        plain = structlog.dev.plain_traceback
        final = [
            structlog.dev.ConsoleRenderer(colors=True, pad_event_to=32, exception_formatter=plain)
        ]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED_PROCESSORS,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *final,
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"handlers": ["stderr"], "propagate": False},
            # Its DEBUG lines hold the API key.
            "python_http_client": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "pymongo": {"level": "WARNING"},
        },
    }


def configure(config: dict[str, Any]) -> None:
    """Configure logging and structlog; named by ``settings.LOGGING_CONFIG``."""
    logging.config.dictConfig(config)
    structlog.configure(
        processors=[
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
