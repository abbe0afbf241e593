"""REST operations on types and template versions."""
