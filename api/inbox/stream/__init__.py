"""The inbox stream: an ASGI application of its own."""
