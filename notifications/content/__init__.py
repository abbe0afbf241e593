"""Content: templates, rendering, redaction."""
