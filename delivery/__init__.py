"""The delivery engine: takes a delivery from due to settled."""
