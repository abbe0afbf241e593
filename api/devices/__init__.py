"""REST operations on devices: registration, heartbeats, preferences, and receipts."""
