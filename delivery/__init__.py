"""The delivery engine: claims due deliveries, sends them, and settles their outcomes."""
