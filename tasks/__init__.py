"""Celery tasks, their schedule, and the ``sweeper`` command."""
