"""Celery tasks, their schedule, and the sweeper command: the third door beside API and console."""
