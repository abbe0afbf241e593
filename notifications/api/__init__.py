"""The REST API: reads bodies, calls the services, writes answers. No logic of its own."""
