"""Worker classes for gunicorn that slow clients cannot block."""
