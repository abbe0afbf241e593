"""The stream of inbox events: an ASGI application of its own."""
