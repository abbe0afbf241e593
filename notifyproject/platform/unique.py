"""Names for what must not be mistaken for another: a message, a token, a request.

They are no secrets. A secret comes from :mod:`secrets`, which asks the kernel each time. A thread
that asks lets the other threads of its process run, and a POST would do so six times: 6 % of its
CPU time. ``random`` asks the kernel once in each process, also after a fork.
"""

import random
import uuid


def new_uuid() -> uuid.UUID:
    """Return a UUID of version 4."""
    return uuid.UUID(int=random.getrandbits(128), version=4)


def new_token() -> str:
    """Return 16 hexadecimal digits."""
    return f"{random.getrandbits(64):016x}"
