"""Analytics events, metrics, and incidents."""
