"""Helps to test an app that sends: its outbox, the service in memory, and fixtures of pytest.

``plugin`` has the fixtures, which pytest finds once the client is installed. With a URL, they use a
service and a test key; without one, :class:`~.memory.MemoryService`, which refuses what the API
refuses and sends nothing.
"""
