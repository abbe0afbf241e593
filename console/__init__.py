"""The operations console. It reads through the ORM and queries, and changes through actions."""
