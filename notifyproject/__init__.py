"""The project: settings, URLs, the Celery application, the MongoDB engine, the local stack."""

# Each process imports this package first, so no time zone is read before domain says from where.
import domain as domain

__version__ = "1.0.0"
"""As in pyproject.toml, which isn't in the image."""
