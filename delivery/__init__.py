"""The engine: what happens to a delivery from the time it is due until it is settled."""
