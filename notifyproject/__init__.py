"""The project: settings, URLs, the Celery application, the MongoDB engine, the local stack."""
