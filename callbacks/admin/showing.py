"""How callbacks are shown: names, times and states in words."""

from collections.abc import Collection, Mapping
from datetime import datetime

from bson import ObjectId

from notifyproject.db.collections import collection

from ..events import CallbackStatus, DisabledReason

NOTHING = "-"
REASONS: Mapping[DisabledReason, str] = {
    DisabledReason.GONE: "Off: its receiver is gone",
    DisabledReason.FAILING: "Off: failing for five days",
    DisabledReason.BY_OPERATOR: "Off: switched off here",
}
MEANINGS: Mapping[DisabledReason, str] = {
    DisabledReason.GONE: (
        "The receiver answered 410, that it is there no more. The app switches the callback on "
        "again by putting it anew, or somebody does here."
    ),
    DisabledReason.FAILING: (
        "Nothing has come through for five days. The app switches the callback on again by "
        "putting it anew, or somebody does here."
    ),
    DisabledReason.BY_OPERATOR: "Somebody switched it off here. The app cannot switch it on again.",
}
TONES: Mapping[CallbackStatus, str] = {
    CallbackStatus.PENDING: "info",
    CallbackStatus.DELIVERED: "success",
    CallbackStatus.FAILED: "danger",
}


def names_of(client_ids: Collection[ObjectId]) -> dict[ObjectId, str]:
    """Return the names of apps, of those there are."""
    found = collection("api_clients").find({"_id": {"$in": list(client_ids)}}, {"name": 1})
    return {document["_id"]: document["name"] for document in found}


def moment(at: datetime | None) -> str:
    """Return a time to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else NOTHING
