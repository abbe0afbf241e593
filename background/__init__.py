"""Celery tasks, their schedule, and the sweeper command: an entry point beside API and console."""
