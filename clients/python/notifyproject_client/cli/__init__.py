"""The command ``notify``: types and templates as files."""
