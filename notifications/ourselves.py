"""What the service sends in its own name: alerts to operators, and tests of a provider."""

from datetime import datetime

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from access import keys

CLIENT = "this service"


def client_id(*, now: datetime) -> ObjectId:
    """Return the client that stands for the service itself; it has no key, so nobody else is it."""
    found = keys.find_client(CLIENT)
    if found is not None:
        return found
    try:
        return keys.create_client(name=CLIENT, scopes=[], now=now)
    except DuplicateKeyError:
        made = keys.find_client(CLIENT)
        if made is None:
            raise
        return made
