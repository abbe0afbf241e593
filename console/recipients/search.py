"""Search of recipients by user ID, address, or words of the name; each has an index."""

import re
from typing import Any

from notifyproject.db.collections import collection

from ..widgets.search import searched_addresses

MAX_RESULTS = 200
MAX_WORDS = 8
_WORD = re.compile(r"\w+")


def find_ids(text: str, *, cap: int = MAX_RESULTS) -> list[str]:
    """Return the user IDs that a text may mean, at most ``cap`` of each kind.

    A name is found by whole words in any order, case, and accents.
    """
    found = dict.fromkeys(_read({"_id": text}, "_id_", cap=cap))
    addresses = searched_addresses(text)
    for spelling in addresses.emails:
        found |= dict.fromkeys(_read({"email": spelling}, "rcp_email", cap=cap))
    if addresses.phone:
        found |= dict.fromkeys(_read({"phone": addresses.phone}, "rcp_phone", cap=cap))
    words = _WORD.findall(text)[:MAX_WORDS]
    # An address and an ID aren't names: their words, such as "com", are in many documents.
    if words and not addresses.emails and any(word.isalpha() for word in words):
        every_word = " ".join(f'"{word}"' for word in words)
        # A full-text index takes no hint: without it, MongoDB rejects the query.
        found |= dict.fromkeys(_read({"$text": {"$search": every_word}}, None, cap=cap))
    return list(found)


def _read(condition: dict[str, Any], index: str | None, *, cap: int) -> list[str]:
    cursor = collection("recipients").find(condition, {"_id": 1}, limit=cap)
    return [row["_id"] for row in (cursor.hint(index) if index else cursor)]
