"""Celery's consumer, for which a message that it can't handle costs only itself."""

import logging
from collections.abc import Callable
from typing import Any

import structlog
from celery.worker import consumer
from vine import promise

from . import broker

log = structlog.get_logger(__name__)


class Consumer(consumer.Consumer):
    """Drops a message whose handling fails.

    Celery logs some faults, such as an unknown task. Others, such as a task's name that is a list,
    end the worker, which puts the message back for the next one.
    """

    def create_task_handler(self, promise: Any = promise) -> Callable[[Any], Any]:
        """Return what handles a message."""
        handle = super().create_task_handler(promise)

        def handle_or_drop(message: Any) -> Any:
            try:
                return handle(message)
            # Not kombu's errors of a channel, of which KeyError is one.
            except broker.ERRORS:
                raise
            except Exception:
                log.exception("unreadable_message_dropped", source="consumer")
                message.reject_log_error(logging.getLogger(__name__), self.connection_errors)
                return None

        return handle_or_drop
