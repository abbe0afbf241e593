"""Leases: whoever works on a document says so in its ``claim``, and until when."""

from datetime import datetime
from typing import Any


def unclaimed(*, now: datetime) -> dict[str, Any]:
    """Return what holds for a document that nobody works on, or nobody any more."""
    return {"$or": [{"claim": None}, {"claim.lease_until": {"$lte": now}}]}
