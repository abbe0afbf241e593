"""The project: settings, URLs, the Celery application, the MongoDB engine, the local stack."""

from .celery import app as celery_app

__all__ = ["celery_app"]
