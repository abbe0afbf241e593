"""Whether a person has been sent it again already, by a resend of the same notification."""

from collections.abc import Sequence

from domain.states import OPEN, SUCCEEDED, Channel
from notifyproject.db.collections import collection

from ..store import Document
from ..verdicts import Kind, Verdict
from .records import Operation
from .resends import resend_id
from .results import Which

SENT_AGAIN = Verdict(
    kind=Kind.MAY_DUPLICATE, why="It was sent again already, as another notification."
)
_STANDS = frozenset(status.value for status in OPEN | SUCCEEDED)


def sent_again(operation: Operation, documents: Sequence[Document]) -> set[Which]:
    """Return the deliveries whose resend is under way or has arrived, this operation's own aside.

    One read by id for all of them.
    """
    originals = {
        resend: document["_id"]
        for document in documents
        for resend in document.get("resent_as", ())
        if resend != resend_id(operation, document["_id"])
    }
    if not originals:
        return set()
    found = collection("notifications").find(
        {"_id": {"$in": list(originals)}}, {"delivery.channel": 1, "delivery.status": 1}
    )
    return {
        Which(originals[resend["_id"]], Channel(delivery["channel"]))
        for resend in found
        for delivery in resend["delivery"]
        if delivery["status"] in _STANDS
    }
