"""The MongoDB engine: django-mongodb-backend, made to use indexes.

Why it exists, with measurements: docs/decisions/0002-database-engine.md.
"""
