"""``manage.py setup``: writes ``.env`` for Compose. It needs no settings and no database."""
