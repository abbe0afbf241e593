"""Types and template versions."""
